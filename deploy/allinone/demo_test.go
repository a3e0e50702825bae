package allinone

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// A demo organization is dropped only where the control plane says that
// it does not have it: a token that is not in force yet proves nothing,
// nor does a failure. What is dropped is kept in a file.
func TestTheDemoIsDroppedOnlyForCertain(t *testing.T) {
	for name, c := range map[string]struct {
		answers []int
		dropped bool
	}{
		"known":                           {[]int{200}, false},
		"known, its operator later":       {[]int{401, 401, 200}, false},
		"unknown":                         {[]int{404}, true},
		"unknown, its operator later":     {[]int{401, 404}, true},
		"known once the database is up":   {[]int{500, 429, 200}, false},
		"unknown once the server answers": {[]int{500, 404}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := 0
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/v1/organizations/org_1" || r.Header.Get("Authorization") != "Bearer weir_st_operator" {
					t.Errorf("asked %s as %q", r.URL, r.Header.Get("Authorization"))
				}
				w.WriteHeader(c.answers[min(asked, len(c.answers)-1)])
				asked++
				_, _ = w.Write([]byte(`{}`))
			}))
			t.Cleanup(server.Close)
			a := &App{logger: testenv.Logger(t), dir: &dataDir{path: t.TempDir()}}
			ca := filepath.Join(a.dir.path, "ca.pem")
			block := &pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}
			if err := os.WriteFile(ca, pem.EncodeToMemory(block), 0o600); err != nil {
				t.Fatal(err)
			}
			before := DevEnv{OperatorToken: "weir_st_operator", Organization: "org_1", ServiceToken: "weir_st_1", APIKey: "weir_1"}
			a.env = before
			if err := a.env.Write(a.dir.env()); err != nil {
				t.Fatal(err)
			}
			api, err := client.New(server.URL+"/v1", ca, 1)
			if err != nil {
				t.Fatal(err)
			}
			defer api.Close()
			if err := a.dropForeignDemo(t.Context(), api); err != nil {
				t.Fatal(err)
			}
			if dropped := a.env != before; dropped != c.dropped || asked != len(c.answers) {
				t.Errorf("after %d answers: dropped %t, want %t", asked, dropped, c.dropped)
			}
			kept, err := filepath.Glob(a.dir.env() + ".2*")
			if err != nil || (len(kept) == 1) != c.dropped {
				t.Fatalf("kept %q, %v", kept, err)
			}
			for _, file := range kept {
				if env, err := ReadDevEnv(file); err != nil || env != before {
					t.Errorf("kept %+v, %v", env, err)
				}
			}
		})
	}
}

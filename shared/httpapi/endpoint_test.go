package httpapi_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
)

// A client with the current document gets a 304.
func TestDocument(t *testing.T) {
	serve := httpapi.Document([]byte(`{"openapi": "3.1.0"}`))
	ask := func(tag string) *httptest.ResponseRecorder {
		recorder, request := httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/v1/openapi.json", nil)
		request.Header.Set("If-None-Match", tag)
		serve(recorder, request)
		return recorder
	}
	first := ask(`"another"`)
	if first.Code != 200 || first.Body.String() != `{"openapi": "3.1.0"}` || first.Header().Get("Cache-Control") != "public, max-age=300" ||
		first.Header().Get("Content-Type") != "application/json" {
		t.Errorf("%d %v %s", first.Code, first.Header(), first.Body)
	}
	if again := ask(first.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
		t.Errorf("again: %d %s", again.Code, again.Body)
	}
}

func TestJoinOpenAPI(t *testing.T) {
	whole := httpapi.OpenAPI{Version: "3.1.0", Info: map[string]string{"title": "t"}}
	for _, part := range []string{
		`{"components": {"schemas": {"A": {"type": "string"}}}}`,
		`{"paths": {"/v1/a": {"get": {}}}, "components": {"schemas": {"A": {"type":"string"}}, "headers": {"H": {}}}}`,
	} {
		testenv.Must(t, whole.Add([]byte(part)))
	}
	joined, err := json.Marshal(whole)
	want := `{"openapi":"3.1.0","info":{"title":"t"},"paths":{"/v1/a":{"get":{}}},"components":{"headers":{"H":{}},"schemas":{"A":{"type":"string"}}}}`
	if err != nil || string(joined) != want {
		t.Errorf("joined: %s, %v", joined, err)
	}
	for _, other := range []string{`{"components": {"schemas": {"A": {"type": "number"}}}}`, `{`} {
		if err := whole.Add([]byte(other)); err == nil {
			t.Errorf("%s was added", other)
		}
	}
	if err := whole.Add([]byte(`{"paths": {"/v1/a": {"post": {}}}}`)); err == nil || !strings.Contains(err.Error(), "/v1/a") {
		t.Errorf("a path twice: %v", err)
	}
}

// A process that was told to stop serves on while it leaves, with all that
// runs beside its endpoint. It says that it is not ready, and its connections
// end with their next answer.
func TestLeaving(t *testing.T) {
	lender := httptest.NewTLSServer(nil)
	defer lender.Close()
	config := httpapi.ServerConfig{Listen: "127.0.0.1:0", Leave: 3 * time.Second, Drain: time.Minute}
	config.TLSCertFile, config.TLSKeyFile = writeCertificate(t, lender.TLS.Certificates[0])
	router := httpapi.NewRouter(httpapi.Options{Logger: slog.New(slog.DiscardHandler), Clock: time.Now})
	httpapi.Health(router, func(context.Context) ([]httpapi.Backlog, error) { return nil, nil })
	endpoint, err := config.Open(router, slog.New(slog.DiscardHandler), time.Now, nil)
	testenv.Must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	leaving, end := endpoint.Leaving(ctx)
	defer end()
	ended := make(chan error, 1)
	go func() { ended <- endpoint.Run(leaving) }()
	get := func(path string) (status int, closed bool) {
		response, err := lender.Client().Get("https://" + endpoint.Addr() + path)
		testenv.Must(t, err)
		defer response.Body.Close()
		_, _ = io.Copy(io.Discard, response.Body)
		return response.StatusCode, response.Close
	}
	if status, closed := get("/readyz"); status != http.StatusOK || closed {
		t.Errorf("before: %d, closed: %t", status, closed)
	}
	stop()
	if status, closed := get("/readyz"); status != http.StatusInternalServerError || !closed {
		t.Errorf("ready while it stops: %d, closed: %t", status, closed)
	}
	if status, closed := get("/healthz"); status != http.StatusOK || !closed { // over a new connection
		t.Errorf("while it leaves: %d, closed: %t", status, closed)
	}
	if leaving.Err() != nil {
		t.Error("what runs beside the endpoint has ended")
	}
	testenv.Must(t, <-ended)
}

func writeCertificate(t *testing.T, of tls.Certificate) (certificate, key string) {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(of.PrivateKey)
	testenv.Must(t, err)
	certificate, key = filepath.Join(t.TempDir(), "server.pem"), filepath.Join(t.TempDir(), "server.key")
	for path, block := range map[string]*pem.Block{certificate: {Type: "CERTIFICATE", Bytes: of.Certificate[0]}, key: {Type: "PRIVATE KEY", Bytes: der}} {
		testenv.Must(t, os.WriteFile(path, pem.EncodeToMemory(block), 0o600))
	}
	return certificate, key
}

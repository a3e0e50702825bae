package app_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// The SDK for Go sends by its three settings, and everything is found. Its
// program is that of the suite in client/conformance.
func testSDK(t *testing.T, r *rig, p *replica) {
	r.account("org_sdk", nil)
	key := r.key("org_sdk", "prj_sdk", nil)
	p.admits(key)
	program := exec.CommandContext(t.Context(), "go", "run", "../client/go/conformance/subject", "100", "60")
	program.Env = append(os.Environ(), "WEIR_BASE_URL="+p.url+"/v1", "WEIR_API_KEY="+key, "WEIR_CA_FILE="+r.config.TLSCertFile)
	program.Stderr = os.Stderr
	said, err := program.Output()
	testenv.Must(t, err)
	if !bytes.Contains(said, []byte(`"accepted":100,"dropped":{}`)) {
		t.Errorf("the SDK says %s", said)
	}
	testenv.Eventually(t, func() error {
		got := p.get(key, "/v1/logs?project=prj_sdk&limit=1000")
		entries, faults := bytes.Count(got.text, []byte(`"message":"entry `)), bytes.Count(got.text, []byte(`"error":{"type":"errors.errorString"`))
		if entries != 100 || faults != 10 {
			return fmt.Errorf("%d with %d entries and %d errors", got.status, entries, faults)
		}
		return nil
	})
}

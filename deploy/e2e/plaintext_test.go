package e2e

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/testenv"
)

// An API key sent over plain HTTP to any of the services is refused and
// flagged, whichever service owns the path.
func TestKeysPlaintext(t *testing.T) {
	in, started := startProcesses(t, nil, nil)
	organization, err := in.api.CreateOrganization(t.Context(), in.operator, "Acme", "indie")
	must(t, err)
	project, err := in.api.CreateProject(t.Context(), in.operator, organization.ID, "Shop")
	must(t, err)
	keys := map[string]client.APIKey{}
	for service := range services {
		keys[service], err = in.api.CreateAPIKey(t.Context(), in.operator, project.ID, "prod", service)
		must(t, err)
	}
	for service, key := range keys {
		testenv.Eventually(t, viewTimeout, func() error {
			sendPlaintext(t, started[service].address, key.Key)
			return in.isFlagged(t, service, key)
		})
	}
}

// sendPlaintext sends a key over plain HTTP, which is refused.
func sendPlaintext(t *testing.T, address, key string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/v1/logs", nil)
	must(t, err)
	request.Header.Set("X-Api-Key", key)
	answer, err := http.DefaultClient.Do(request)
	must(t, err)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err != nil || answer.StatusCode != http.StatusForbidden || !strings.Contains(string(text), "https_required") {
		t.Fatalf("http://%s answers %d %s, %v", address, answer.StatusCode, text, err)
	}
}

// isFlagged returns why a key is not marked as seen over plain HTTP.
func (in installation) isFlagged(t *testing.T, service string, key client.APIKey) error {
	t.Helper()
	answer, err := in.api.Call(t.Context(), client.Request{
		Method: http.MethodGet, Path: "/api-keys/" + key.ID, Header: map[string]string{"Authorization": "Bearer " + in.operator},
	})
	must(t, err)
	if !strings.Contains(string(answer.Body), `"kind":"plain_http"`) || !strings.Contains(string(answer.Body), `"address":"127.0.0.1"`) {
		return fmt.Errorf("the key that %s was sent is not flagged: %d %s", service, answer.Status, answer.Body)
	}
	return nil
}

package bustest

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// Shows waits until a scrape contains these lines.
func Shows(t testing.TB, registry *telemetry.Registry, lines ...string) {
	t.Helper()
	testenv.Eventually(t, Timeout, func() error {
		scrape := httptest.NewRecorder()
		registry.Handler().ServeHTTP(scrape, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		for _, line := range lines {
			if !strings.Contains(scrape.Body.String(), line+"\n") {
				return fmt.Errorf("%q is missing in\n%s", line, scrape.Body)
			}
		}
		return nil
	})
}

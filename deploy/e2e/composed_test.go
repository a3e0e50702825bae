//go:build composed

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weirlog/weir/shared/testenv"
)

// Addresses of Prometheus and Alertmanager in scenario.yaml.
const (
	prometheusURL   = "http://127.0.0.1:19090/api/v1/"
	alertmanagerURL = "http://127.0.0.1:19093/api/v2/"
)

// The installation of `make up`, at WEIR_BASE_URL, with the
// secrets in WEIR_SECRETS.
func TestComposed(t *testing.T) {
	o := newConsole(t)
	o.follow("install.md", "One machine")
	scenario(t, o.connect(), nil)
	t.Run("targets", targetsAnswer)
	t.Run("rules", rulesAreLoaded)
	t.Run("traces", sampled("otelcol_receiver_accepted_spans > 0"))
	t.Run("backup", sampled("weir_backup_verified_timestamp_seconds > 0"))
	t.Run("doctor", doctorFindsNothing)
	t.Run("page", func(t *testing.T) { o.on(t).follow("../compose/README.md", "Weir on one machine") })
	t.Run("runbooks", func(t *testing.T) { o.on(t).followRunbooks() })
}

// targetsAnswer waits until Prometheus has scraped every process, and
// knows its Alertmanager.
func targetsAnswer(t *testing.T) {
	testenv.Eventually(t, func() error {
		var seen struct {
			Data struct {
				ActiveTargets []struct{ ScrapeURL, Health, LastError string }
			}
		}
		if err := fetch(prometheusURL+"targets", &seen); err != nil {
			return err
		}
		for _, target := range seen.Data.ActiveTargets {
			if target.Health != "up" {
				return fmt.Errorf("%s is %s: %s", target.ScrapeURL, target.Health, target.LastError)
			}
		}
		if n := len(seen.Data.ActiveTargets); n != 8 {
			return fmt.Errorf("%d targets, of five services, the backup, the machine and the collector", n)
		}
		return nil
	})
	var told struct {
		Data struct{ ActiveAlertmanagers []struct{ URL string } }
	}
	testenv.Must(t, fetch(prometheusURL+"alertmanagers", &told))
	if len(told.Data.ActiveAlertmanagers) != 1 {
		t.Errorf("alerts go to %+v", told)
	}
}

// rulesAreLoaded compares Prometheus's alerts with those in the file.
func rulesAreLoaded(t *testing.T) {
	var seen struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Type, Health, LastError string }
			}
		}
	}
	testenv.Must(t, fetch(prometheusURL+"rules", &seen))
	alerts := 0
	for _, group := range seen.Data.Groups {
		for _, rule := range group.Rules {
			if rule.Type == "alerting" {
				alerts++
			}
			if rule.Health == "err" {
				t.Errorf("%s: %s", rule.Name, rule.LastError)
			}
		}
	}
	text, err := os.ReadFile("../prometheus/alerts.yaml")
	testenv.Must(t, err)
	if want := strings.Count(string(text), "- alert:"); alerts != want || want == 0 {
		t.Errorf("Prometheus has %d alerts of %d", alerts, want)
	}
}

// sampled waits until Prometheus has a sample that a query finds.
func sampled(query string) func(*testing.T) {
	return func(t *testing.T) {
		testenv.Eventually(t, func() error {
			var seen struct {
				Data struct{ Result []json.RawMessage }
			}
			err := fetch(prometheusURL+"query?query="+url.QueryEscape(query), &seen)
			if err == nil && len(seen.Data.Result) == 0 {
				err = errors.New("nothing shows " + query)
			}
			return err
		})
	}
}

// doctorFindsNothing runs the doctor inside the network.
func doctorFindsNothing(t *testing.T) {
	compose(t, "run --rm -T doctor doctor --strict")
}

// A stopped service raises an alert that reaches Alertmanager, and ends
// once the service is back. It takes minutes: COMPOSED=TestComposed
// makes `make test-compose` run it.
func TestComposedAlarm(t *testing.T) {
	const stopped = "grouping:9464"
	newConsole(t).follow("install.md", "One machine")
	compose(t, "stop grouping")
	await(t, stopped, true)
	compose(t, "start grouping")
	await(t, stopped, false)
}

// await waits until Alertmanager has, or no longer has, the alert that
// an instance is down.
func await(t *testing.T, instance string, raised bool) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var seen []struct{ Labels map[string]string }
		if err := fetch(alertmanagerURL+"alerts", &seen); err != nil {
			return err
		}
		var down []string
		for _, alert := range seen {
			if alert.Labels["alertname"] == "WeirTargetDown" {
				down = append(down, alert.Labels["instance"])
			}
		}
		if slices.Contains(down, instance) != raised {
			return fmt.Errorf("down are %q of %d alerts", down, len(seen))
		}
		return nil
	})
}

// compose runs a command of Docker Compose for this project, after the
// words of WEIR_COMPOSE.
func compose(t *testing.T, command string) {
	t.Helper()
	shell := exec.CommandContext(t.Context(), "sh", "-c", os.Getenv("WEIR_COMPOSE")+" "+command)
	shell.Dir = filepath.Join("..", "..")
	if said, err := shell.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, said)
	}
}

func fetch(url string, into any) error {
	answer, err := http.Get(url) //nolint:gosec,noctx // on this machine, bounded by the test's own limit
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return json.NewDecoder(answer.Body).Decode(into)
}

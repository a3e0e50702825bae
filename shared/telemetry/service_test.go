package telemetry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
)

// start runs a service until the test ends, and returns its metrics' address.
func start(t *testing.T, service *telemetry.Service) string {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run = %v, want an orderly end", err)
		}
	})
	testenv.Eventually(t, func() error {
		if service.Addr() == "" {
			return errors.New("not listening yet")
		}
		return nil
	})
	return "http://" + service.Addr()
}

func get(t *testing.T, url string) (status int, body string) {
	t.Helper()
	response, err := http.Get(url)
	testenv.Must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	testenv.Must(t, err)
	return response.StatusCode, string(text)
}

func count(service *telemetry.Service, name string) {
	counter := prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: "Of the test."})
	service.Registerer.MustRegister(counter)
	counter.Inc()
}

// A scrape shows the process and the service's instruments, under
// the service's name.
func TestMetricsAreShown(t *testing.T) {
	service := telemetry.Config{MetricsListen: "127.0.0.1:0"}.Service("ledger", testenv.Logger(t))
	count(service, "work_total")
	status, body := get(t, start(t, service)+"/metrics")
	if status != http.StatusOK {
		t.Errorf("status %d, want 200", status)
	}
	for _, line := range []string{`work_total{service="ledger"} 1`, "go_goroutines ", "process_cpu_seconds_total "} {
		if !strings.Contains(body, line) {
			t.Errorf("%q is missing in\n%s", line, body)
		}
	}
}

// A client that asks for OpenMetrics gets it, with the same series.
func TestOpenMetrics(t *testing.T) {
	service := telemetry.Config{MetricsListen: "127.0.0.1:0"}.Service("ledger", testenv.Logger(t))
	count(service, "work_total")
	scrape, err := http.NewRequest(http.MethodGet, start(t, service)+"/metrics", nil)
	testenv.Must(t, err)
	scrape.Header.Set("Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
	response, err := http.DefaultClient.Do(scrape)
	testenv.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	testenv.Must(t, err)
	kind := response.Header.Get("Content-Type")
	if !strings.HasPrefix(kind, "application/openmetrics-text") || !strings.Contains(string(body), `work_total{service="ledger"} 1.0`+"\n") {
		t.Errorf("got %s:\n%s", kind, body)
	}
}

// Services of one process share a registry, and their instruments of
// the same name stay apart.
func TestServicesShareARegistry(t *testing.T) {
	registry := telemetry.New()
	for _, name := range []string{"ledger", "ingest"} {
		count(telemetry.Config{Registry: registry}.Service(name, testenv.Logger(t)), "work_total")
	}
	all := telemetry.Config{Registry: registry, MetricsListen: "127.0.0.1:0"}.Service("weir", testenv.Logger(t))
	_, body := get(t, start(t, all)+"/metrics")
	for _, line := range []string{`work_total{service="ledger"} 1`, `work_total{service="ingest"} 1`} {
		if !strings.Contains(body, line) {
			t.Errorf("%q is missing in\n%s", line, body)
		}
	}
}

// Profiles are served, the command line is not: it may hold secrets.
func TestProfiles(t *testing.T) {
	url := start(t, telemetry.Config{MetricsListen: "127.0.0.1:0"}.Service("ledger", testenv.Logger(t)))
	for path, want := range map[string]int{
		"/debug/pprof/":                   http.StatusOK,
		"/debug/pprof/goroutine":          http.StatusOK,
		"/debug/pprof/trace?seconds=0.01": http.StatusOK,
		"/debug/pprof/cmdline":            http.StatusNotFound,
		"/":                               http.StatusNotFound,
	} {
		if status, _ := get(t, url+path); status != want {
			t.Errorf("GET %s: status %d, want %d", path, status, want)
		}
	}
}

// A slow reader delays nobody for long.
func TestEndsWhileAProfileRuns(t *testing.T) {
	service := telemetry.Config{MetricsListen: "127.0.0.1:0"}.Service("ledger", testenv.Logger(t))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	testenv.Eventually(t, func() error {
		if service.Addr() == "" {
			return errors.New("not listening yet")
		}
		return nil
	})
	begun := make(chan struct{})
	go func() {
		response, err := http.Get("http://" + service.Addr() + "/debug/pprof/trace?seconds=60") // writes its header at once
		close(begun)
		if err == nil {
			response.Body.Close()
		}
	}()
	<-begun
	stop()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("Run = %v, want an orderly end", err)
		}
	case <-time.After(30 * time.Second):
		t.Error("Run still waits for the profile")
	}
}

// A port in use is an error of one line that names the setting and the address.
func TestPortInUse(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	testenv.Must(t, err)
	defer taken.Close()
	address := taken.Addr().String()
	err = telemetry.Config{MetricsListen: address}.Service("ledger", testenv.Logger(t)).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), address) || !strings.Contains(err.Error(), "WEIR_METRICS_LISTEN") || strings.Contains(err.Error(), "\n") {
		t.Errorf("Run = %v, want one line that names WEIR_METRICS_LISTEN and %s", err, address)
	}
}

// Without an address there is no listener.
func TestNoListener(t *testing.T) {
	service := telemetry.Config{}.Service("ledger", testenv.Logger(t))
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := service.Run(ctx); err != nil || service.Addr() != "" {
		t.Errorf("Run = %v with address %q, want neither", err, service.Addr())
	}
}

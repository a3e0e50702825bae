package service_test

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/cursorkey"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/authority"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// All errors are named at once, without the password in an address.
func TestValidate(t *testing.T) {
	config := service.Config{ServerConfig: httpapi.ServerConfig{Drain: -1, TrustedProxies: []string{"nobody"}}, Servers: service.Servers{DatabaseURL: "https://weir:hunter2@db"}}
	config.Limits.ReadsPerMinute, config.Retention.ParkedDays, config.Deletions.DeletionsMonths, config.Replica.Wait = -1, -1, 1, -1
	config.BrokerAccess.User = "ledger"
	err := config.Validate()
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, setting := range []string{
		"WEIR_DRAIN", "nobody", "WEIR_READS_PER_MINUTE", "WEIR_BROKERS is", "WEIR_BROKERS_PASSWORD_FILE", "WEIR_PARKED_DAYS", "WEIR_DELETIONS_MONTHS",
		"WEIR_REPLICA_WAIT", "WEIR_DATABASE_URL",
	} {
		if !strings.Contains(err.Error(), setting) {
			t.Errorf("%s is not named in %q", setting, err)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the password is shown: %q", err)
	}
}

// Unreadable settings are errors before anything is opened.
func TestNewNeedsReadableSettings(t *testing.T) {
	var config service.Config
	config.TrustedProxies = []string{"nobody"}
	if _, err := service.New("ledger", config, testenv.Logger(t)); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("New = %v", err)
	}
}

// Close releases all that was opened: connections, and the address.
func TestClose(t *testing.T) {
	base := open(t)
	testenv.Must(t, base.Pool.Ping(t.Context()))
	addr := base.Endpoint.Addr()
	base.Close()
	if base.Pool.Ping(t.Context()) == nil || base.Reads.Ping(t.Context()) == nil {
		t.Error("a pool is still open")
	}
	listener, err := net.Listen("tcp", addr)
	testenv.Must(t, err)
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
}

// open opens all that a base can open.
func open(t *testing.T) *service.Base {
	t.Helper()
	certificate := authority.New(t, "weir", time.Now()).Issue(t, "ledger", time.Now().Add(time.Hour), "127.0.0.1")
	config := service.Config{Servers: service.Servers{Brokers: []string{"127.0.0.1:1"}, DatabaseURL: httpapi.Secret(postgrestest.URL(t))}}
	config.Listen, config.TLSCertFile, config.TLSKeyFile = "127.0.0.1:0", certificate.Cert, certificate.Key
	base, err := service.New("ledger", config, testenv.Logger(t))
	testenv.Must(t, err)
	for _, opened := range []error{
		base.OpenDatabase(t.Context(), pg.Schema{Name: "ledger", Migrations: []pg.MigrationSet{cursorkey.Migrations()}}),
		base.OpenReads(t.Context(), "ledger", 1),
		base.OpenPublisher(publisher.Config{}),
		base.Listen(http.NotFoundHandler(), func(httpapi.PlaintextRequest) {}),
	} {
		if opened != nil {
			t.Fatal(opened)
		}
	}
	return base
}

// A start that fails early has opened nothing.
func TestCloseOfWhatIsNotOpen(t *testing.T) {
	base, err := service.New("ledger", service.Config{}, testenv.Logger(t))
	testenv.Must(t, err)
	base.Close()
}

package postgrestest

import (
	"context"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/internal/docker"
)

// A Database is one of the test's own on a server with faults.
type Database struct {
	*fault.Server
	URL string // through the network
}

// Faulty gives the test a database of its own as URL does, on a server
// that no test without faults uses. If only WEIR_TEST_DATABASE_URL
// names the server, only the network before it can have faults.
//
// All faults are healed when the test ends. Tests with faults take
// turns, parallel or not: one that also needs a shared server asks for
// it after this.
func Faulty(t testing.TB) *Database {
	t.Helper()
	fault.Turn(t)
	admin, process, where, err := serverForFaults(t)
	if err != nil {
		t.Fatalf("testenv: no PostgreSQL that faults can be done to: %v", err)
	}
	backend.Announce("PostgreSQL for faults", where)
	server, url := fault.Before(t, "PostgreSQL", newDatabase(t, admin), process)
	return &Database{server, url}
}

// faultyServer is this package's second server: its faults must not
// affect tests without faults.
var faultyServer = sync.OnceValues(func() (*postgres.Server, error) {
	return start(context.Background(), postgres.Config{Killable: true})
})

// serverForFaults returns the superuser's URL of a server for faults.
func serverForFaults(t testing.TB) (admin string, process fault.Process, where string, err error) {
	t.Helper()
	if url := backend.Given(testenv.EnvDatabase); url != "" {
		return url, fault.Given(testenv.EnvDatabase), "given by " + testenv.EnvDatabase, nil
	}
	switch backend.Chosen() {
	case "containers":
		admin, process, err = inContainer(t)
		return admin, process, "container of " + docker.PostgresImage(), err
	case "machine", "kafka":
		server, err := faultyServer()
		if err != nil {
			return "", nil, "", err
		}
		return server.AdminURL(), server, "local server, binaries in " + server.Binaries(), nil
	default:
		return "", nil, "", backend.ErrUnknown()
	}
}

package clickhousetest

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/weirlog/weir/shared/embedded/chdb"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/internal/backend"
	"github.com/weirlog/weir/shared/testenv/port"
)

// EnvURL names a server: http://user:password@host:8123, of a user that may
// create databases and row policies.
const EnvURL = "WEIR_TEST_CLICKHOUSE_URL"

// URL makes a new database for the test and returns its address. It is
// dropped when the test ends.
func URL(t testing.TB) string {
	t.Helper()
	s, err := server(t)
	if err != nil {
		t.Fatalf("testenv: no ClickHouse: %v", err)
	}
	backend.Announce("ClickHouse", s.where)
	name, err := s.create(t.Context())
	testenv.Must(t, err)
	t.Cleanup(func() {
		if _, err := s.query(context.Background(), "DROP DATABASE IF EXISTS "+name+" SYNC"); err != nil {
			t.Errorf("testenv: %v", err)
		}
	})
	return s.address + "/" + name
}

// A served ClickHouse.
type served struct {
	address string // without a database
	where   string
	chdb    *chdb.Server // nil: it is another
}

// server returns the one of this process.
func server(t testing.TB) (served, error) {
	t.Helper()
	if given := os.Getenv(EnvURL); given != "" {
		return served{address: strings.TrimSuffix(given, "/"), where: "given by " + EnvURL}, nil
	}
	if backend.Chosen() == "containers" && image() != "" {
		return inContainer(t)
	}
	return local()
}

// local starts chdb once.
var local = sync.OnceValues(func() (served, error) {
	folder, err := testenv.Scratch("weir-test-chdb-")
	if err != nil {
		return served{}, err
	}
	engine, err := chdb.Start(context.Background(), folder)
	if err != nil {
		return served{}, fmt.Errorf("%w; or give the address of a server by %s", err, EnvURL)
	}
	return served{address: engine.URL, where: "chdb-core " + chdb.Version + " behind an HTTP front", chdb: engine}, nil
})

// image of ClickHouse's containers; empty: there is none, as where no image
// can be pulled.
func image() string {
	if given, ok := os.LookupEnv("WEIR_TEST_CLICKHOUSE_IMAGE"); ok {
		return given
	}
	return "clickhouse/clickhouse-server:26.3"
}

func inContainer(t testing.TB) (served, error) {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		return served{}, err
	}
	s := served{address: fmt.Sprintf("http://weir:weir@127.0.0.1:%d", free), where: "container of " + image()}
	variables := map[string]string{"CLICKHOUSE_USER": "weir", "CLICKHOUSE_PASSWORD": "weir", "CLICKHOUSE_DEFAULT_ACCESS_MANAGEMENT": "1"}
	c, err := backend.RunContainer(image(), 8123, free, variables, func(ctx context.Context) error {
		_, err := s.query(ctx, "SELECT 1")
		return err
	})
	if err != nil {
		return served{}, err
	}
	c.RemoveAtEnd(t)
	return s, nil
}

// create makes a database.
func (s served) create(ctx context.Context) (name string, err error) {
	if s.chdb != nil {
		return s.chdb.Create(ctx)
	}
	name = "weir_test_" + strings.ToLower(rand.Text()[:12])
	_, err = s.query(ctx, "CREATE DATABASE "+name)
	return name, err
}

func (s served) query(ctx context.Context, text string) (string, error) {
	return chdb.Query(ctx, s.address, text)
}

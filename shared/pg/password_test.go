package pg_test

import (
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A password in a file may change while connections are in use: new
// ones sign in with the file's password.
func TestChangedPassword(t *testing.T) {
	address, err := url.Parse(postgrestest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	passfile := filepath.Join(t.TempDir(), "pgpass")
	set := func(password string) {
		t.Helper()
		if err := os.WriteFile(passfile, []byte("*:*:*:*:"+password+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	password, _ := address.User.Password()
	address.User = url.User(address.User.Username())
	query := address.Query()
	query.Set("passfile", passfile)
	query.Set("pool_max_conns", "2")
	address.RawQuery = query.Encode()
	set(password)
	pool, err := pg.Open(t.Context(), address.String(), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	connect := func() error {
		connection, err := pool.Acquire(t.Context())
		if err == nil {
			t.Cleanup(connection.Release)
		}
		return err
	}
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	set("wrong")
	if err := connect(); err == nil {
		t.Fatal("a new connection signed in with the password of before")
	}
	set(password)
	if err := connect(); err != nil {
		t.Errorf("a new connection does not take the password of now: %v", err)
	}
}

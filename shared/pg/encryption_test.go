package pg_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/authority"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

const waitTimeout = 30 * time.Second

// With verify-full only a server's certificate identifies it. An error
// names the setting, and replaced files are used without a restart.
func TestVerifiedServer(t *testing.T) {
	server, err := postgrestest.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	trusted, other := authority.New(t, "trusted", time.Now()), authority.New(t, "other", time.Now())
	soon := time.Now().Add(time.Hour)
	postgrestest.Encrypt(t, server, trusted.Issue(t, "postgres", soon, "127.0.0.1"))
	root := filepath.Join(t.TempDir(), "root.pem")
	copyFile(t, trusted.File, root)
	address := verified(t, server, root)
	pool, err := pg.OpenLater(t.Context(), address.String(), schema)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	testenv.Eventually(t, waitTimeout, func() error { return pool.Ping(t.Context()) }) // the server loads the certificate some time later
	var encrypted bool
	if err := pool.QueryRow(t.Context(), `SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()`).Scan(&encrypted); err != nil || !encrypted {
		t.Errorf("encrypted: %t, %v", encrypted, err)
	}

	elsewhere, guessed := *address, *address
	elsewhere.Host = "localhost:" + address.Port()
	guessed.User = url.UserPassword(address.User.Username(), "guessed")
	for name, c := range map[string]struct{ address, want string }{
		"an authority that is not the server's": {verified(t, server, other.File).String(), "sslrootcert in WEIR_DATABASE_URL"},
		"a name that the certificate lacks":     {elsewhere.String(), "by a name that its certificate has"},
		"a wrong password":                      {guessed.String(), "the password in WEIR_DATABASE_URL or its passfile"},
	} {
		if err := refusal(t, c.address); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "guessed") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}

	postgrestest.Encrypt(t, server, trusted.Issue(t, "postgres", time.Now().Add(-time.Minute), "127.0.0.1"))
	testenv.Eventually(t, waitTimeout, func() error {
		if err := refusal(t, address.String()); err == nil || !strings.Contains(err.Error(), "which is out of date") {
			return fmt.Errorf("with an expired certificate: %w", err)
		}
		return nil
	})
	postgrestest.Encrypt(t, server, other.Issue(t, "postgres", soon, "127.0.0.1"))
	copyFile(t, other.File, root)
	testenv.Eventually(t, waitTimeout, func() error {
		pool.Reset()
		return pool.Ping(t.Context())
	})
}

func verified(t *testing.T, server *postgres.Server, root string) *url.URL {
	t.Helper()
	address, err := url.Parse(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	address.RawQuery = url.Values{"sslmode": {"verify-full"}, "sslrootcert": {root}}.Encode()
	return address
}

func refusal(t *testing.T, address string) error {
	t.Helper()
	pool, err := pg.Open(t.Context(), address, schema)
	if err == nil {
		pool.Close()
	}
	return err
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

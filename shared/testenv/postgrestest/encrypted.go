package postgrestest

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/testenv/authority"
)

// Encrypt gives a server a certificate for new connections. The server
// writes the files itself: it may run as another user.
func Encrypt(t testing.TB, server *postgres.Server, certificate authority.Certificate) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), server.AdminURL())
	failOn(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	for file, from := range map[string]string{"server.crt": certificate.Cert, "server.key": certificate.Key} {
		text, err := os.ReadFile(from)
		failOn(t, err)
		_, err = conn.Exec(t.Context(), fmt.Sprintf(`COPY (SELECT unnest(string_to_array('%s', chr(10)))) TO PROGRAM 'umask 077; cat > %s'`, text, file))
		failOn(t, err)
	}
	for _, statement := range []string{`ALTER SYSTEM SET ssl = on`, `SELECT pg_reload_conf()`} {
		_, err := conn.Exec(t.Context(), statement)
		failOn(t, err)
	}
}

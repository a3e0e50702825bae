package pg

import (
	"crypto/x509"
	"errors"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Remedy returns one sentence about what to do when a server
// refuses a connection.
func Remedy(err error) string {
	var refused *pgconn.PgError
	if errors.As(err, &refused) {
		return remedyOf(refused.Code)
	}
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var other x509.HostnameError
	switch {
	case errors.As(err, &unknown):
		return "Name the authority of the server's certificate by sslrootcert in WEIR_DATABASE_URL: it is read for each connection."
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "Replace the server's certificate, which is out of date (pg_ctl reload takes another): services go on by themselves."
	case errors.As(err, &other):
		return "Reach the server in WEIR_DATABASE_URL by a name that its certificate has, or have one issued for this name."
	case strings.Contains(err.Error(), "server refused TLS"):
		return "Turn ssl on at the server: sslmode in WEIR_DATABASE_URL demands it."
	}
	return "Start PostgreSQL, and check host and port in WEIR_DATABASE_URL, name resolution and firewalls between."
}

func remedyOf(code string) string {
	switch code {
	case "28P01", "28000":
		return "Correct the user or the password in WEIR_DATABASE_URL or its passfile, or let pg_hba.conf admit them; ALTER ROLE … PASSWORD sets another one."
	case "3D000":
		return "Correct the database's name in WEIR_DATABASE_URL, or make the database (CREATE DATABASE … OWNER …)."
	case "42501":
		return "Grant the role the right to connect (GRANT CONNECT ON DATABASE … TO …)."
	case "53300":
		return "Raise max_connections, or run fewer processes."
	}
	return "Look at the server's log."
}

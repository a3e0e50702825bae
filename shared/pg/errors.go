package pg

import (
	"context"
	"errors"
	"net"

	"github.com/jackc/pgx/v5/pgconn"
)

// IsUnique reports whether err violates a unique index or primary key.
func IsUnique(err error) bool {
	return code(err) == "23505"
}

// IsReferenced reports that a row can't be deleted because another
// table refers to it.
func IsReferenced(err error) bool {
	return code(err) == "23503"
}

// IsTransient reports whether the same transaction may succeed later:
// serialization failure, deadlock, lock timeout, or an unavailable
// database. Such an error never parks or refuses anything.
func IsTransient(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03":
		return true
	}
	return isUnavailable(err)
}

// isUnavailable reports whether the database was unreachable,
// shutting down, or out of connections or space.
func isUnavailable(err error) bool {
	if sqlstate := code(err); sqlstate != "" {
		return class(sqlstate) == "08" || class(sqlstate) == "53" || class(sqlstate) == "57" || sqlstate == "25006"
	}
	var network net.Error
	var connect *pgconn.ConnectError
	return errors.As(err, &network) || errors.As(err, &connect) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, context.DeadlineExceeded) || pgconn.SafeToRetry(err)
}

// IsTimeout reports whether a statement exceeded its timeout.
func IsTimeout(err error) bool {
	return code(err) == "57014"
}

// IsData reports whether the database refused a value itself (SQLSTATE
// class 22, 23 or 54): a retry can't help.
func IsData(err error) bool {
	switch class(code(err)) {
	case "22", "23", "54":
		return true
	}
	return false
}

func code(err error) string {
	var pgErr *pgconn.PgError
	if errors.As(err, &pgErr) {
		return pgErr.Code
	}
	return ""
}

func class(sqlstate string) string {
	if len(sqlstate) < 2 {
		return ""
	}
	return sqlstate[:2]
}

package doctor

import (
	"testing"

	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// alter changes the role until the test ends.
func alter(change, back string) func(*testing.T, *installation, *Config) {
	return func(t *testing.T, i *installation, _ *Config) {
		postgrestest.Superuser(t, `ALTER ROLE `+i.role(t)+` `+change)
		t.Cleanup(func() { postgrestest.Superuser(t, `ALTER ROLE `+i.role(t)+` `+back) })
	}
}

var limitFaults = []fault{
	{"role with few connections", alter(`CONNECTION LIMIT 7`, `CONNECTION LIMIT -1`),
		Finding{Check: "role", Subject: "ingest", Level: Fail, Seen: "may open 7 connections"}},
	{"password that ends", alter(`VALID UNTIL 'tomorrow'`, `VALID UNTIL 'infinity'`),
		Finding{Check: "role", Subject: "tenants", Level: Warn, Seen: "ends at"}},
	{"role that may only read", alter(`SET default_transaction_read_only = on`, `RESET default_transaction_read_only`),
		Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "can write nothing"}},
	{"role whose commits may be lost", alter(`SET synchronous_commit = off`, `RESET synchronous_commit`),
		Finding{Check: "role", Subject: "ledger", Level: Fail, Seen: "is lost where the server fails"}},
	{"role whose statements are cancelled", alter(`SET statement_timeout = '20ms'`, `RESET statement_timeout`),
		Finding{Check: "role", Subject: "grouping", Level: Warn, Seen: "what takes longer is cancelled"}},
}

package groupingtest

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/weirlog/weir/grouping"
	"github.com/weirlog/weir/grouping/internal/bus"
	"github.com/weirlog/weir/grouping/internal/groups"
	"github.com/weirlog/weir/grouping/internal/postgres"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/identity"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/pg/pgtest"
)

// Webhook is the fact of a webhook of acme that asks for no alerts.
const Webhook = `{"organization":"acme","webhook":"whk_1","host":"hooks.example","events":["quota.exhausted"],"on":true}`

// New makes a group of two AlphaErrors, which differ in their callers, the newest, and
// one of a BetaError, in project shop of organization acme, which has the member mem_1
// and the webhook whk_1.
func New(t testing.TB) *groups.Service { return With(t, func(*groups.Config) {}) }

// With is New with another configuration.
func With(t testing.TB, change func(config *groups.Config)) *groups.Service {
	t.Helper()
	pool := pgtest.Open(t, postgres.Schema, postgres.Migrations()...)
	directory := identity.NewDirectory()
	if err := directory.Apply(contract.TypeMemberAdded, []byte(`{"organization":"acme","member":"mem_1","name":"Me","role":"developer"}`)); err != nil {
		t.Fatal(err)
	}
	if err := directory.Apply(contract.TypeWebhookChanged, []byte(Webhook)); err != nil {
		t.Fatal(err)
	}
	config := groups.Config{
		NewGroups: grouping.Budgets{Project: math.MaxInt, Organization: math.MaxInt}, Projects: directory, Pool: pool, Reads: pool, Concurrency: 2,
		Announce:  func(context.Context, pgx.Tx, []postgres.Change) error { return nil },
		Report:    func(context.Context, pgx.Tx, []groups.Change) error { return nil },
		Send:      func(context.Context, pgx.Tx, []postgres.Message) error { return nil },
		Read:      bus.ReadEntry,
		MaxAlerts: 50, Clock: time.Now, Metrics: prometheus.NewRegistry(),
	}
	change(&config)
	service := groups.New(config)
	tally, noon := grouping.NewTally(), time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	for i, typ := range []string{"AlphaError", "BetaError", "AlphaError"} {
		tally.Add(grouping.Occurrence{Organization: "acme", Project: "shop", Entry: fmt.Sprint("entry", i),
			Accepted: noon, At: noon.Add(time.Duration(i) * time.Second),
			Severity: grouping.SeverityError, Environment: "prod", Error: grouping.Error{Type: typ, StackTrace: []string{
				"at com.acme.A.b(A.java:1)", "at com.acme.B.c(B.java:1)", "at com.acme.C.d(C.java:1)", "at com.acme.D.e(D.java:1)",
				"at com.acme.E." + string(rune('f'+i)) + "(E.java:1)", "at java.lang.Thread.run(Thread.java:1)",
			}}})
	}
	err := pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		_, err := service.Errors.Count(t.Context(), tx, tally)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return service
}

// Entries are the entries of New as items of the log store, and one without an error,
// in a body that asks which of them are of a group; more is the rest of it.
func Entries(more string) string {
	var items []string
	for i, typ := range []string{"AlphaError", "BetaError", "AlphaError", ""} {
		of := fmt.Sprintf(`,"error":{"type":%q,"stack_trace":["at com.acme.A.b(A.java:1)","at com.acme.B.c(B.java:1)",`+
			`"at com.acme.C.d(C.java:1)","at com.acme.D.e(D.java:1)"]}`, typ)
		if typ == "" {
			of = ""
		}
		items = append(items, fmt.Sprintf(`{"id":"entry%d","organization":"acme","project":"shop","environment":"prod","received_at":"2026-11-21T12:00:00Z",`+
			`"entry":{"timestamp":"2026-11-21T12:00:0%dZ","level":"error","message":"it <broke>","metadata":{"release":"1.0"}%s}}`, i, i, of))
	}
	return `{"items":[` + strings.Join(items, ",") + `]` + more + `}`
}

// Failure is an entry with an error of the
// given kind, whose trace has 12 lines.
func Failure(kind int) string {
	line := `{"timestamp":"2026-11-20T12:00:00.123Z","level":"error","message":"request failed","metadata":{"request":"7f3a9c21","user":"alice"},` +
		`"error":{"type":"java.lang.IllegalStateException","message":"cannot pay","stack_trace":[`
	for i := range 12 {
		line += fmt.Sprintf(`"at com.acme.pay.Gateway%s.charge%c(Gateway.java:%d)",`, Letters(kind), 'a'+i, 100+i)
	}
	return line[:len(line)-1] + `]}}`
}

// HotAndRare is the nth error of a sequence: 90 % are
// of one kind, the others of so many kinds in turn.
func HotAndRare(n, kinds int) string {
	if n%10 > 0 {
		return Failure(0)
	}
	return Failure(1 + n/10*7919%(kinds-1))
}

// Letters writes n without digits, which would be taken for a counter.
func Letters(n int) string {
	text := ""
	for ; n > 0; n /= 26 {
		text += string(rune('a' + n%26))
	}
	return text
}

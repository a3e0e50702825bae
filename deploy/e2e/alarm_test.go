package e2e

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	ingest "github.com/weirlog/weir/ingest/app"
	books "github.com/weirlog/weir/ledger"
	ledger "github.com/weirlog/weir/ledger/app"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/contract/contracttest"
	"github.com/weirlog/weir/shared/httpapi"
	base "github.com/weirlog/weir/shared/service"
	"github.com/weirlog/weir/shared/telemetry"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/fault"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
)

// A watched installation is ingest and the ledger, with planted faults
// and with metrics read as the alerts of deploy/prometheus do.
type watched struct {
	*testing.T
	registry *telemetry.Registry
	broker   *fault.Network // before it
	database *fault.Network // before it
	conn     *pgx.Conn      // not through that
	others   *contracttest.Others
	key      string
	books    ledger.Config
	stop     func() // the ledger
	intake   *ingest.App
}

const ofQuota = `{group="ledger.quota",service="ledger",topic="weir.logs.v1"}`

// The faults of urgent alerts change those alerts' metrics, and nothing
// else does: each metric is 0 before its fault.
func TestFaultsRaiseAlarms(t *testing.T) {
	kafkatest.Parallel(t)
	w := newWatched(t)
	t.Run("a record that can't be applied", func(t *testing.T) {
		w.T = t
		w.quiet("WeirRecordsParked", "weir_bus_parked_records_total"+ofQuota)
		w.others.Publish(contract.TopicLogs, "prj_1", map[string]string{"ce_type": contract.TypeLogsAccepted}, []byte("no header of ours"))
		w.raised("WeirRecordsParked", "weir_bus_parked_records_total"+ofQuota)
	})
	t.Run("books that were changed by hand", func(t *testing.T) {
		w.T = t
		violated := fmt.Sprintf("weir_ledger_violations_total{invariant=%q,service=\"ledger\"}", books.BalanceIsTransfers)
		w.quiet("WeirBooksViolated", violated)
		w.sql(`UPDATE ledger.books SET grant_left = grant_left - 1, consumed = consumed + 1 WHERE consumed > 0`)
		w.send()
		w.raised("WeirBooksViolated", violated)
	})
	t.Run("PostgreSQL is gone", w.withoutPostgres)
	t.Run("the broker is gone", w.withoutBroker)
	t.Run("the log has lost its end", w.withoutRecords)
}

// withoutPostgres makes the ledger lag, and its transactions fail,
// until the database is back.
func (w *watched) withoutPostgres(t *testing.T) {
	w.T = t
	failed := w.value("weir_bus_failed_transactions_total" + ofQuota)
	w.database.Cut()
	w.send()
	w.await("WeirTransactionsFail", "weir_bus_failed_transactions_total"+ofQuota, func(now float64) bool { return now > failed })
	applied := w.value("weir_bus_applied_records_total" + ofQuota)
	w.send()
	w.await("WeirConsumerStandsStill", "weir_bus_lag_records", func(lag float64) bool { return lag > 0 })
	if now := w.value("weir_bus_applied_records_total" + ofQuota); now != applied {
		t.Errorf("without a database %v records were applied", now-applied)
	}
	testenv.Must(t, w.database.Heal())
	w.await("WeirConsumerStandsStill", "weir_bus_applied_records_total"+ofQuota, func(now float64) bool { return now > applied })
	w.await("WeirConsumerStandsStill", "weir_bus_lag_records", func(lag float64) bool { return lag == 0 })
}

// withoutRecords puts the ledger's position outside the log before
// its next start.
func (w *watched) withoutRecords(t *testing.T) {
	w.T = t
	lost := `weir_ingest_log_lost_end{service="ingest"}`
	before := w.registry
	w.quiet("WeirConsumerHalted", "weir_bus_halted_partitions"+ofQuota)
	w.quiet("WeirLogLostEnd", lost)
	w.stop()
	w.sql(`UPDATE ledger.bus_positions SET next = 1000000 WHERE group_name = 'ledger.quota'`)
	w.start()
	w.raised("WeirConsumerHalted", "weir_bus_halted_partitions"+ofQuota)
	w.registry = before
	w.raised("WeirLogLostEnd", lost)
	if code := postTo(t, w.intake.Handler(), w.key, 1); code != httpapi.CodeUnavailable {
		t.Errorf("while the ledger has counted more than the log has, a request is answered %q", code)
	}
}

// withoutBroker leaves ingest without acknowledgements, and with ageing
// states of others.
func (w *watched) withoutBroker(t *testing.T) {
	w.T = t
	failed := `weir_bus_publish_failed_records_total{service="ingest"}`
	unknown := `weir_bus_publish_unknown_records_total{service="ingest"}`
	lost := w.value(failed) + w.value(unknown) // a slow machine may have lost some before
	unanswered := `weir_http_request_duration_seconds{method="POST",route="/v1/logs",service="ingest",status="5xx"}`
	before := w.value(unanswered)
	w.broker.Cut()
	if code := postTo(t, w.intake.Handler(), w.key, 1); code != httpapi.CodeUnavailable {
		t.Errorf("without a broker a request is answered %q", code)
	}
	if now := w.value(unanswered); now != before+1 {
		t.Errorf("of one request %v count as not answered", now-before)
	}
	w.await("WeirPublishingFails", failed, func(now float64) bool { return now+w.value(unknown) > lost })
	age := `weir_bus_state_age_seconds{service="ingest",topic="weir.credentials.v1"}`
	w.await("WeirStateStale", age, func(now float64) bool { return now > 2 })
	testenv.Must(t, w.broker.Heal())
	w.await("WeirStateStale", age, func(now float64) bool { return now < 1 })
}

func newWatched(t *testing.T) *watched {
	t.Helper()
	given, database := kafkatest.Brokers(t), postgrestest.URL(t)
	nodes, err := kafkatest.NewNetworks(given)
	testenv.Must(t, err)
	brokers := []string{nodes[0].Address()}
	w := &watched{T: t, registry: telemetry.New(), broker: nodes[0], others: contracttest.New(t, "nobody", brokers, 1)}
	for _, node := range nodes {
		t.Cleanup(node.Close)
	}
	address, err := url.Parse(database)
	testenv.Must(t, err)
	w.database, err = fault.NewNetwork(address.Host)
	testenv.Must(t, err)
	t.Cleanup(w.database.Close)
	address.Host = w.database.Address()
	w.conn, err = pgx.Connect(t.Context(), database)
	testenv.Must(t, err)
	t.Cleanup(func() { testenv.Must(t, w.conn.Close(context.Background())) })
	w.sql(`SELECT set_config('weir.organization', '*', false)`)
	w.others.PublishEvent(contract.TopicTenants, contract.TypeOrganizationCreated, "acme",
		contract.OrganizationCreated{Organization: "acme", Name: "Acme", Tier: "scale", CreatedAt: time.Now().Add(-time.Minute)})
	w.others.PublishEvent(contract.TopicTenants, contract.TypeProjectCreated, "prj_1",
		contract.ProjectCreated{Organization: "acme", Project: "prj_1", Name: "Shop", CreatedAt: time.Now()})
	w.key = w.others.Issue(contract.Credential{Kind: contract.CredentialAPIKey, Organization: "acme", Project: "prj_1", Environment: "prod"})
	measured := telemetry.Config{Registry: w.registry}
	w.books = ledger.Config{
		Config:        base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: httpapi.Secret(address.String())}, Telemetry: measured},
		CheckInterval: 50 * time.Millisecond, RulesConfig: ledger.RulesConfig{TierScaleBytes: 1 << 30, TierScaleRequests: 1_000_000},
	}
	w.start()
	w.intake, err = ingest.New(t.Context(), ingest.Config{
		Config:  base.Config{Servers: base.Servers{Brokers: brokers, DatabaseURL: httpapi.Secret(database)}, Telemetry: measured},
		Publish: ingest.PublishConfig{PublishTimeout: time.Second},
	}, testenv.Logger(t))
	testenv.Must(t, err)
	testenv.Run(t, w.intake.Run)
	w.send()
	return w
}

// start runs the ledger, each time with new metrics.
func (w *watched) start() {
	w.Helper()
	if w.stop != nil {
		w.registry = telemetry.New()
		w.books.Telemetry.Registry = w.registry
	}
	app, err := ledger.New(w.Context(), w.books, testenv.Logger(w))
	testenv.Must(w.T, err)
	w.stop = testenv.Run(w.T, app.Run)
}

// send posts an entry until it is accepted.
func (w *watched) send() {
	w.Helper()
	testenv.Eventually(w.T, func() error {
		if code := postTo(w.T, w.intake.Handler(), w.key, 1); code != "" {
			return fmt.Errorf("answered %s", code)
		}
		return nil
	})
}

func (w *watched) sql(statement string) {
	w.Helper()
	_, err := w.conn.Exec(w.Context(), statement)
	testenv.Must(w.T, err)
}

// quiet checks that an alert's metric is 0.
func (w *watched) quiet(alert, series string) {
	w.Helper()
	w.await(alert, series, func(now float64) bool { return now == 0 })
}

// raised waits until an alert's metric is above 0.
func (w *watched) raised(alert, series string) {
	w.Helper()
	w.await(alert, series, func(now float64) bool { return now > 0 })
}

// await waits until an alert's metric, or one series of it, is as wanted.
func (w *watched) await(alert, series string, is func(float64) bool) {
	w.Helper()
	if name, _, _ := strings.Cut(series, "{"); !strings.Contains(expression(w.T, alert), name) {
		w.Fatalf("%s does not go by %s", alert, name)
	}
	testenv.Eventually(w.T, func() error {
		if now := w.value(series); !is(now) {
			return fmt.Errorf("%s is %v", series, now)
		}
		return nil
	})
}

// value returns a series' value, a histogram's count, or the sum of a
// metric of the ledger's quota; 0 without any.
func (w *watched) value(series string) (sum float64) {
	w.Helper()
	families, err := w.registry.Registered().Gather()
	testenv.Must(w.T, err)
	for _, family := range families {
		for _, m := range family.GetMetric() {
			var labels []string
			for _, label := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", label.GetName(), label.GetValue()))
			}
			own := family.GetName() + "{" + strings.Join(labels, ",") + "}"
			if own == series || family.GetName() == series && strings.Contains(own, `group="ledger.quota"`) {
				sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			}
		}
	}
	return sum
}

// expression returns an alert's query.
func expression(t *testing.T, alert string) string {
	t.Helper()
	text, err := os.ReadFile("../prometheus/alerts.yaml")
	testenv.Must(t, err)
	of := regexp.MustCompile(`(?s)- alert: ` + alert + `\n(.*?)labels: `).FindSubmatch(text)
	if of == nil {
		t.Fatalf("there is no alert %s", alert)
	}
	return string(of[1])
}

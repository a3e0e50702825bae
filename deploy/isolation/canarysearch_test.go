package isolation

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// search looks for the canaries everywhere, and reports which it found
// where. It stops the modules first; their state remains.
func (w *world) search(t *testing.T, server *postgres.Server, canaries []canary, answers *journal) (found []string) {
	t.Helper()
	places := map[string]string{"metrics": w.shown()}
	maps.Copy(places, processes(t, server))
	w.stop()
	maps.Copy(places, map[string]string{
		"answers to requests that failed": answers.String(), "log": w.log.String(), "server's log": read(t, server.LogFile()),
	})
	maps.Copy(places, w.tables(t))
	maps.Copy(places, w.topics(t))
	maps.Copy(places, w.states(t))
	for _, place := range slices.Sorted(maps.Keys(places)) {
		if places[place] == "" && !strings.HasPrefix(place, "t") && !strings.HasPrefix(place, "process") {
			t.Errorf("there was nothing to look through: %s", place)
		}
		for _, c := range canaries {
			if at := c.in(places[place]); at != "" {
				found = append(found, fmt.Sprintf("%s shows %s: …%s…", place, c.name, at))
			}
		}
	}
	return found
}

// in returns the text around the canary: whole, its digits without the
// prefix, most of its digits, or in hexadecimal.
func (c canary) in(text string) string {
	prefix, digits, _ := strings.Cut(c.secret, "_")
	forms := []string{c.secret, hex.EncodeToString([]byte(c.secret))}
	if strings.HasPrefix(prefix, "weir") { // another's secret may hold the character anywhere
		forms = append(forms, digits, digits[4:len(digits)-4])
	}
	for _, form := range forms {
		if i := strings.Index(text, form); i >= 0 {
			return text[max(0, i-80):min(len(text), i+len(form)+40)]
		}
	}
	return ""
}

// shown returns the metrics.
func (w *world) shown() string {
	recorder := httptest.NewRecorder()
	w.metrics.Handler().ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	return recorder.Body.String()
}

// schemas of the modules.
var schemas = []string{"grouping", "ingest", "ledger", "tenants"}

// tables returns all rows of all tables of all modules as text.
func (w *world) tables(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, schema := range schemas {
		pool, err := pg.Open(t.Context(), w.database, schema)
		must(t, err)
		for _, table := range tablesOf(t, pool, schema) {
			all["table "+schema+"."+table] = rowsOf(t, pool, table)
		}
		pool.Close()
	}
	if len(all) < 20 {
		t.Errorf("only %d tables were looked through", len(all))
	}
	return all
}

func tablesOf(t *testing.T, pool *pgxpool.Pool, schema string) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), `SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace AND relkind IN ('r', 'p')`, schema)
	must(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	must(t, err)
	return names
}

func rowsOf(t *testing.T, pool *pgxpool.Pool, table string) (text string) {
	t.Helper()
	must(t, pg.InTx(t.Context(), pool, func(tx pgx.Tx) error {
		if err := pg.AsSystem(t.Context(), tx); err != nil {
			return err
		}
		rows, err := tx.Query(t.Context(), `SELECT r::text FROM `+pgx.Identifier{table}.Sanitize()+` r`)
		if err != nil {
			return err
		}
		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		text = strings.Join(lines, "\n")
		return err
	}))
	return text
}

// topics returns all records of all topics as text.
func (w *world) topics(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, topic := range contract.Topics(1, 0) {
		all["topic "+topic.Name] = w.records(t, topic.Name)
	}
	return all
}

func (w *world) records(t *testing.T, topic string) string {
	t.Helper()
	var text strings.Builder
	w.eachRecord(t, topic, func(record bus.Record) { text.WriteString(textOf(record)) })
	return text.String()
}

func textOf(record bus.Record) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s %s\n", record.Key, record.Value)
	for _, header := range record.Headers {
		fmt.Fprintf(&text, "%s: %s\n", header.Key, header.Value)
	}
	return text.String()
}

func (w *world) eachRecord(t *testing.T, topic string, visit func(bus.Record)) {
	t.Helper()
	var mu sync.Mutex
	reader := state.NewReader(state.Config{Brokers: w.brokers, Topic: topic, Apply: func(record bus.Record) error {
		mu.Lock()
		defer mu.Unlock()
		visit(record)
		return nil
	}}, slog.New(slog.DiscardHandler))
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reader.Run(ctx) }()
	testenv.Eventually(t, waitTimeout, func() error {
		select {
		case <-reader.Ready():
			return nil
		default:
			return fmt.Errorf("%s is not read yet", topic)
		}
	})
	cancel()
	<-ended
}

// plantRow stores a secret in a table.
func (w *world) plantRow(t *testing.T, secret string) {
	t.Helper()
	_, err := w.pool.Exec(t.Context(), `INSERT INTO migrations (set_name, file) VALUES ('planted', $1)`, secret)
	must(t, err)
}

// plantRecord publishes a secret.
func (w *world) plantRecord(t *testing.T, secret string) {
	t.Helper()
	publisher, err := publisher.New(publisher.Config{Brokers: w.brokers}, slog.New(slog.DiscardHandler))
	must(t, err)
	defer publisher.Close()
	planted := message.NewMessage(uuid.NewString(), []byte(`{}`))
	planted.Metadata = message.Metadata{bus.KeyMetadata: "planted", "ce_subject": secret}
	must(t, publisher.Publish(contract.TopicCredentials, planted))
}

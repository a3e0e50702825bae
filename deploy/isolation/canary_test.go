package isolation

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	kafkago "github.com/segmentio/kafka-go"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/bus/state"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/embedded/postgres"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
)

// A canary is a secret that must not be found anywhere after it went
// through the whole product.
type canary struct{ name, secret string }

// canaryPassword is the password of one member, in no dictionary.
const canaryPassword = "Zaunkönig-kestrel-9f2c71"

// A secret is only in the answer to its creation: in no log at any
// level, of Weir or of the database server, no metric, record, row,
// exchanged file, process list or error body. Every operation was done,
// failing ones included, and secrets were put where they do not belong.
// Data is exempt: a client that writes its key into a message, a name
// or a reason wants it kept and shown.
func TestCanary(t *testing.T) {
	server := startServer(t)
	provider, adjust := withProvider(t)
	w := newWorldOn(t, server.URL(), adjust)
	owner := w.foundedBy(t)
	a, b := w.tenant(t, "Acorn"), w.tenant(t, "Birch")
	canaries, callers := w.canaries(t, a, b)
	canaries = append(canaries, owner, w.rotatedKey(t, a), passwordIn(t, w.database))
	canaries = append(canaries, w.codes(t, a)...)
	canaries = append(canaries, canary{"the key of webhooks", webhookKey}, canary{"the secret of a webhook", a.webhook(t).get("secret")})
	answers := &journal{}
	for _, p := range policies {
		for _, caller := range callers {
			if p.ends && caller.session != nil {
				continue // it would end the canary's own
			}
			w.observe(t, answers, caller.sends(p.request(t, a)))
		}
	}
	for _, c := range canaries {
		if !strings.HasPrefix(c.secret, "weir") {
			continue // a password can't be distinguished from a word where none is expected
		}
		for _, r := range misplaced(c.secret, a) {
			w.observe(t, answers, r)
		}
	}
	w.signInWith(t, answers, canaryPassword)
	canaries = append(canaries, w.byPasskey(t, answers, a)...)
	canaries = append(canaries, w.byProvider(t, answers, a, provider)...)
	w.settle(t, a)
	planted := w.plant(t, answers)
	var places []string // where the planted one was found
	for _, found := range w.search(t, server, append(canaries, planted), answers) {
		if strings.Contains(found, " shows "+planted.name+": ") {
			places = append(places, strings.Fields(found)[0])
			continue
		}
		t.Error(found)
	}
	want := []string{"answers", "log", "metrics", "process", "server's", "state", "table", "topic"}
	if runtime.GOOS != "linux" {
		want = slices.DeleteFunc(want, func(place string) bool { return place == "process" })
	}
	slices.Sort(places)
	if places = slices.Compact(places); !slices.Equal(places, want) {
		t.Errorf("the planted one is found in %q, want %q", places, want)
	}
}

// plant puts a canary into each place: the search has to find it there.
func (w *world) plant(t *testing.T, answers *journal) canary {
	t.Helper()
	planted := canary{"planted", "weir_" + strings.Repeat("5eed", 12)}
	fmt.Fprintln(answers, planted.secret)
	fmt.Fprintln(w.log, planted.secret)
	httpapi.NewMetrics(w.metrics.For("planted")).Observe(t.Context(), planted.secret, http.MethodGet, http.StatusOK, time.Second)
	w.plantRow(t, planted.secret)
	w.plantRecord(t, planted.secret)
	w.plantFailure(t, planted.secret)
	plantProcess(t, planted.secret)
	return planted
}

// canaries returns the secrets and the callers that carry them.
func (w *world) canaries(t *testing.T, a, b *tenant) ([]canary, []principal) {
	t.Helper()
	token := w.tokenHolder(t, a, "a token of A with all scopes", scopes...)
	owner, foreign := w.memberOf(t, a, "owner"), w.memberOf(t, b, "owner")
	callers := []principal{
		{name: "the operator", header: asToken(operatorToken), token: &grant{}},
		{name: "an API key of A", header: asKey(a.key), key: a}, {name: "an API key of B", header: asKey(b.key), key: b},
		token, owner, foreign, {name: "a revoked API key of A", header: asKey(w.revokedKey(t, a))},
	}
	canaries := []canary{{"a password", canaryPassword}, {"every member's password", password}}
	for _, caller := range callers {
		for _, value := range caller.header {
			canaries = append(canaries, canary{caller.name, strings.TrimPrefix(value, "Bearer ")})
		}
		for _, cookie := range caller.cookies {
			canaries = append(canaries, canary{"the session of " + caller.name, cookie.Value})
		}
	}
	return canaries, callers
}

// linked matches a one-time code in a link: after the #, which
// browsers don't send.
var linked = regexp.MustCompile(`https://weir\.example/console/(?:welcome|join|reset)#([a-z]+_[0-9a-f]+)`)

// foundedBy lets somebody become the first owner by the link
// that was printed, and returns the code.
func (w *world) foundedBy(t *testing.T) canary {
	t.Helper()
	var code string
	testenv.Eventually(t, func() error {
		found := linked.FindStringSubmatch(w.output.String())
		if found == nil {
			return fmt.Errorf("no link for the first owner yet: %q", w.output.String())
		}
		code = found[1]
		return nil
	})
	w.useTwice(t, "/console/welcome", url.Values{"code": {code}, "organization": {"First"}, "name": {"First"}, "email": {"first@example.com"}, "password": {password}})
	return canary{"the code of the first owner", code}
}

// codes are one-time codes that were handed out, by the console and the API:
// used, and void because another took their place.
func (w *world) codes(t *testing.T, of *tenant) (codes []canary) {
	t.Helper()
	owner := w.memberOf(t, of, "owner")
	handedOut := func(name, path, body string) string {
		got := w.send(t, request{method: "POST", path: path, body: body, cookies: owner.cookies, header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
		found := linked.FindStringSubmatch(got.text)
		if found == nil {
			t.Fatalf("POST %s: %d %s", path, got.status, got.brief())
		}
		codes = append(codes, canary{name, found[1]})
		return found[1]
	}
	filled := of.fill(t, "{new-email}", "/console/settings/members/{new-member}/reset")
	email, reset := filled[0], filled[1]
	joins := handedOut("the code of an invitation", "/console/settings/members/invitations", url.Values{"email": {email}, "role": {"viewer"}}.Encode())
	w.useTwice(t, "/console/join", url.Values{"code": {joins}, "email": {email}, "name": {"Invited"}, "password": {password}})
	handedOut("a reset code that is void", reset, "")
	resets := handedOut("a reset code", reset, "")
	w.useTwice(t, "/console/reset", url.Values{"code": {resets}, "password": {password}})
	for name, path := range map[string]string{
		"a reset code from the API":        "/v1/members/{new-member}/reset-code",
		"an invitation's code, sent again": "/v1/invitations/{new-invitation}/resend",
	} {
		codes = append(codes, canary{name, w.operate(t, "POST", of.fill(t, path)[0], nil).get("code")})
	}
	return codes
}

// useTwice uses a code, and again, which is refused. That page holds the code
// for the one who typed it, and is not kept here.
func (w *world) useTwice(t *testing.T, path string, form url.Values) {
	t.Helper()
	for _, want := range []int{http.StatusSeeOther, http.StatusUnprocessableEntity} {
		got := w.send(t, request{method: "POST", path: path, body: form.Encode(), header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
		if got.status != want {
			t.Fatalf("POST %s: %d %s, want %d", path, got.status, got.brief(), want)
		}
	}
}

func passwordIn(t *testing.T, database string) canary {
	t.Helper()
	address, err := url.Parse(database)
	testenv.Must(t, err)
	secret, _ := address.User.Password()
	return canary{"the database's password", secret}
}

// rotatedKey is a key that took another's place.
func (w *world) rotatedKey(t *testing.T, of *tenant) canary {
	t.Helper()
	return canary{"a rotated key", w.operate(t, "POST", of.fill(t, "/v1/api-keys/{new-key}/rotate")[0], nil).get("key")}
}

// misplaced are requests that carry a secret where it does not belong.
func misplaced(secret string, of *tenant) (requests []request) {
	escaped := url.PathEscape(secret)
	for _, path := range []string{
		"/v1/logs?api_key=" + url.QueryEscape(secret), "/v1/logs?project=" + url.QueryEscape(secret), "/v1/logs?cursor=" + url.QueryEscape(secret),
		"/v1/error-groups/" + escaped, "/v1/projects/" + escaped + "/error-groups", "/v1/organizations/" + escaped + "/balance",
		"/v1/api-keys?project=" + url.QueryEscape(secret), "/v1/" + escaped, "/" + escaped, "/v1/logs?%zz" + escaped,
		"/console/errors/" + escaped, "/console/" + escaped, "/console/logs?project=" + url.QueryEscape(secret), "/readyz?" + escaped,
	} {
		for _, header := range []map[string]string{nil, asKey(of.key), asToken(operatorToken)} {
			requests = append(requests, request{method: "GET", path: path, header: header})
		}
	}
	for _, name := range []string{"Authorization", "X-Api-Key", "Cookie", "User-Agent", "Referer", "Traceparent", "X-Request-Id", "X-Forwarded-For",
		"Idempotency-Key", "Content-Type", "Content-Encoding", "Origin", "Accept", "If-None-Match", secretHeader} {
		header := map[string]string{"X-Api-Key": of.key, name: secret}
		if name == secretHeader {
			header = map[string]string{"X-Api-Key": of.key, "X-Debug": secret}
		}
		requests = append(requests, request{method: "POST", path: "/v1/logs", body: logs("Acorn"), header: header})
		header = maps.Clone(header)
		if name != "Authorization" {
			header["Authorization"] = "Bearer " + operatorToken
		}
		requests = append(requests, request{method: "POST", path: "/v1/projects", body: `{"organization":"` + of.things["organization"] + `","name":"P"}`, header: header})
	}
	quoted, _ := json.Marshal(secret)
	for _, body := range []string{
		`{"api_key":` + string(quoted) + `,"logs":[]}`, `{"api_key":` + string(quoted) + `,` + logs("Acorn")[1:], `{"api_key":` + string(quoted),
		`{"api_key":[` + string(quoted) + `],"logs":[{}]}`, `{"logs":[{"api_key":7}],"` + `api_key":` + string(quoted) + `,"api_key":` + string(quoted) + `}`,
		string(quoted), `{"organization":` + string(quoted) + `,"name":"P"}`, `{"project":` + string(quoted) + `,"environment":"prod","name":"K"}`,
	} {
		requests = append(requests,
			request{method: "POST", path: "/v1/logs", body: body}, request{method: "POST", path: "/v1/logs", body: body, header: asKey(of.key)},
			request{method: "POST", path: "/v1/projects", body: body, header: asToken(operatorToken)},
			request{method: "POST", path: "/v1/api-keys", body: body, header: asToken(operatorToken)})
	}
	return requests
}

// secretHeader stands for a header that nobody knows.
const secretHeader = "a header that nobody knows"

// signInWith signs a member in by a password of its own, and
// tries it where it is wrong.
func (w *world) signInWith(t *testing.T, answers *journal, password string) {
	t.Helper()
	of := w.tenant(t, "Cedar")
	email := of.fill(t, "{new-email}")[0]
	w.operate(t, "POST", "/v1/members", map[string]any{
		"organization": of.things["organization"], "email": email, "name": "Canary", "role": "owner", "password": password,
	})
	for _, address := range []string{email, "nobody@example.com", ""} {
		w.observe(t, answers, request{method: "POST", path: "/console/sign-in", body: url.Values{"email": {address}, "password": {password}}.Encode(),
			header: map[string]string{"Sec-Fetch-Site": "same-origin"}})
	}
	for _, body := range []map[string]any{
		{"organization": of.things["organization"], "email": email, "name": "Twice", "role": "owner", "password": password},
		{"organization": of.things["organization"], "email": "x", "name": "", "role": "king", "password": password},
		{"organization": of.things["organization"], "email": "x@example.com", "name": "N", "role": "owner", "password": []string{password}},
	} {
		encoded, _ := json.Marshal(body)
		w.observe(t, answers, request{method: "POST", path: "/v1/members", body: string(encoded), header: asToken(operatorToken)})
	}
}

// observe sends a request and keeps what is answered to one that fails. What
// succeeds may show a secret: that it has just made.
func (w *world) observe(t *testing.T, answers *journal, r request) {
	t.Helper()
	got := w.send(t, r)
	if got.status >= http.StatusInternalServerError {
		t.Errorf("%s %s: %d %s", r.method, r.path, got.status, got.brief())
	}
	if got.status/100 == 2 {
		return
	}
	fmt.Fprintln(answers, got.status, got.header, got.text)
}

// settle waits until what was sent before has arrived everywhere.
func (w *world) settle(t *testing.T, of *tenant) {
	t.Helper()
	of.name = "Settled"
	got := w.send(t, request{method: "POST", path: "/v1/logs", body: logs(of.name), header: asKey(of.key)})
	if got.status != http.StatusOK {
		t.Fatalf("POST /v1/logs: %d %s", got.status, got.brief())
	}
	testenv.Eventually(t, func() error {
		got := w.send(t, request{method: "GET", path: "/v1/logs?q=Settled", header: asKey(of.key)})
		if !strings.Contains(got.text, "Settled") {
			return fmt.Errorf("not stored yet: %s", got.brief())
		}
		return nil
	})
}

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
		testenv.Must(t, err)
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
	testenv.Must(t, err)
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	testenv.Must(t, err)
	return names
}

func rowsOf(t *testing.T, pool *pgxpool.Pool, table string) (text string) {
	t.Helper()
	testenv.Must(t, pg.InTxAsSystem(t.Context(), pool, func(tx pgx.Tx) error {
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
	testenv.Eventually(t, func() error {
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
	testenv.Must(t, err)
}

// plantRecord publishes a secret.
func (w *world) plantRecord(t *testing.T, secret string) {
	t.Helper()
	publisher, err := publisher.New(publisher.Config{Brokers: w.brokers}, slog.New(slog.DiscardHandler))
	testenv.Must(t, err)
	defer publisher.Close()
	planted := message.NewMessage(uuid.NewString(), []byte(`{}`))
	planted.Metadata = message.Metadata{bus.KeyMetadata: "planted", "ce_subject": secret}
	testenv.Must(t, publisher.Publish(contract.TopicCredentials, planted))
}

// isForgotten looks for the mark in the memory of this process: in
// everything reachable from the variables of packages and the caches of
// the modules, which have run here since the tenant's first day. The
// broker runs here too, so its topics, which have their own retention,
// are deleted first. What is under way to a consumer goes with the next answer.
func (w *world) isForgotten(t *testing.T) {
	t.Helper()
	w.deleteTopics(t)
	w.pool.Reset() // connections keep what they read last
	control := []byte(rand.Text())
	testenv.Eventually(t, func() error {
		memory := heap(t)
		if !bytes.Contains(memory, control) {
			t.Error("the search does not find what is in memory")
		}
		for _, form := range []string{mark, strings.ToLower(mark), hex.EncodeToString([]byte(mark)), hex.EncodeToString([]byte(strings.ToLower(mark)))} {
			if at := bytes.Index(memory, []byte(form)); at >= 0 {
				around := printable(memory[max(0, at-200):min(len(memory), at+200)])
				return fmt.Errorf("memory shows %s %d times, first in …%s…", form, bytes.Count(memory, []byte(form)), around)
			}
		}
		return nil
	})
	runtime.KeepAlive(control)
	runtime.KeepAlive(w.modules)
}

// printable removes the bytes that are no text.
func printable(memory []byte) string {
	return strings.Join(strings.FieldsFunc(string(memory), func(r rune) bool { return r < ' ' || r > '~' }), " ")
}

// heap returns the memory in use, without what could be collected.
func heap(t *testing.T) []byte {
	t.Helper()
	for range 2 { // a sync.Pool lasts for one collection
		runtime.GC()
	}
	path := filepath.Join(t.TempDir(), "heap")
	file, err := os.Create(path)
	testenv.Must(t, err)
	debug.WriteHeapDump(file.Fd())
	testenv.Must(t, file.Close())
	memory, err := os.ReadFile(path)
	testenv.Must(t, errors.Join(err, os.Remove(path)))
	return memory
}

// deleteTopics deletes all topics of the broker.
func (w *world) deleteTopics(t *testing.T) {
	t.Helper()
	client := &kafkago.Client{Addr: kafkago.TCP(w.brokers...), Timeout: testenv.Patience}
	var names []string
	for _, topic := range contract.Topics(1, 0) {
		names = append(names, topic.Name)
	}
	answer, err := client.DeleteTopics(t.Context(), &kafkago.DeleteTopicsRequest{Topics: names})
	testenv.Must(t, err)
	for _, err := range answer.Errors {
		testenv.Must(t, err)
	}
}

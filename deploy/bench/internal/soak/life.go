package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
)

// A request is made by the operator through the API. Names in braces stand
// for what is known.
type request struct {
	makes              string // the name under which the answer's id is known from then on, and with " secret" a key or token
	method, path, body string
}

// known is what a tenant or the visitors are called.
type known map[string]string

// What is asked for. {other tier} is asked for by those who change it.
var (
	founding = []request{
		{"organization", http.MethodPost, "/organizations", `{"name":"{name}","tier":"{tier}"}`},
		{"project", http.MethodPost, "/projects", `{"organization":"{organization}","name":"{name}"}`},
		{"owner", http.MethodPost, "/members",
			`{"organization":"{organization}","email":"owner{number}@example.com","name":"{name}","role":"owner","password":"` + password + `"}`},
		{"webhook", http.MethodPost, "/organizations/{organization}/webhooks",
			`{"url":"{receiver}","events":["error_group.created","period.closed","statement.ready"]}`},
	}
	billing = request{"billing", http.MethodPost, "/service-tokens",
		`{"organization":"{organization}","name":"billing","scopes":["billing:read","billing:write"]}`}

	newKey  = request{"key", http.MethodPost, "/api-keys", `{"project":"{project}","environment":"prod","name":"a month's key"}`}
	oldKey  = request{"", http.MethodPost, "/api-keys/{key}/revoke", `{"reason":"a new month"}`}
	monthly = []request{
		{"", http.MethodPost, "/organizations/{organization}/grants", `{"amount":1000000,"reason":"gift {number}-{month}","expires_at":"{soon}"}`},
		{"", http.MethodPost, "/organizations/{organization}/adjustments", `{"amount":-1000,"reason":"mistake {number}-{month}"}`},
		{"", http.MethodPost, "/organizations/{organization}/webhooks/{webhook}/replay", `{"since":"{now}"}`},
		{"", http.MethodPut, "/organizations/{organization}/thresholds", `{"percents":[50,90]}`},
		{"", http.MethodPut, "/organizations/{organization}/security-policy", `{"leaked_keys":"rotate","plain_http_keys":"flag"}`},
		{"", http.MethodPost, "/invitations", `{"organization":"{organization}","email":"guest-{number}-{month}@example.com","role":"viewer"}`},
		{"", http.MethodPatch, "/projects/{project}", `{"name":"shop {number}-{month}"}`},
	}
	newColleague = request{"colleague", http.MethodPost, "/members", `{"organization":"{organization}","email":"colleague{number}-{month}@example.com",` +
		`"name":"Colleague","role":"developer","password":"` + password + `"}`}
	oldColleague = request{"", http.MethodPost, "/members/{colleague}/remove", ""}

	// Visitors come for a month, and are deleted: an organization that tries
	// Weir, one with a test clock, and a project of the first tenant.
	arriving = []request{
		{"trial", http.MethodPost, "/organizations", `{"name":"Trial {month}","tier":"indie"}`},
		{"tried", http.MethodPost, "/projects", `{"organization":"{trial}","name":"Prototype"}`},
		{"trial's key", http.MethodPost, "/api-keys", `{"project":"{tried}","environment":"dev","name":"a trial's key"}`},
		{"test", http.MethodPost, "/organizations", `{"name":"Test {month}","tier":"indie"}`},
		{"", http.MethodPut, "/organizations/{test}/test-clock", `{}`},
		{"", http.MethodPost, "/organizations/{test}/test-clock/use", `{"bytes":1000}`},
		{"project", http.MethodPost, "/projects", `{"organization":"{host}","name":"Prototype"}`},
		{"key", http.MethodPost, "/api-keys", `{"project":"{project}","environment":"dev","name":"a trial's key"}`},
	}
	leaving = []request{
		{"", http.MethodDelete, "/organizations/{trial}", ""}, {"", http.MethodDelete, "/organizations/{test}", ""},
		{"", http.MethodDelete, "/projects/{project}", ""},
	}
	smallBudget = request{"", http.MethodPut, "/organizations/{host}/budgets", `[{"project":"{project}","bytes":1}]`}
)

// password of all people.
const password = "forty-two weirs upstream"

// ask makes requests, each until the modules know what it is about.
func (r *run) ask(ctx context.Context, about known, requests ...request) error {
	for _, q := range requests {
		var pairs []string
		for name, value := range about {
			pairs = append(pairs, "{"+name+"}", value)
		}
		replacer := strings.NewReplacer(pairs...)
		q.path, q.body = replacer.Replace(q.path), replacer.Replace(q.body)
		if err := r.askOnce(ctx, about, q); err != nil {
			return fmt.Errorf("%s %s %s: %w", q.method, q.path, q.body, err)
		}
	}
	return nil
}

func (r *run) askOnce(ctx context.Context, about known, q request) error {
	header := map[string]string{"Authorization": "Bearer " + r.app.Env().OperatorToken, "Content-Type": "application/json"}
	if q.method == http.MethodPost && strings.HasPrefix(q.path, "/organizations/") {
		header["Idempotency-Key"] = q.body
	}
	var made struct{ ID, Key, Token string }
	err := until(ctx, q.method+" "+q.path+" finds what it is about", func(ctx context.Context) (bool, error) {
		answer, err := r.api.Call(ctx, client.Request{Method: q.method, Path: q.path, Header: header, Body: []byte(q.body)})
		if err == nil {
			err = answer.Problem()
		}
		if isProblem(err, http.StatusNotFound) {
			return false, nil
		}
		if err == nil && q.makes != "" {
			err = json.Unmarshal(answer.Body, &made)
		}
		return true, err
	})
	if q.makes != "" {
		about[q.makes], about[q.makes+" secret"] = made.ID, made.Key+made.Token
	}
	return err
}

func isProblem(err error, status int) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && problem.Status == status
}

// A tenant is an organization with a project, and its behavior.
type tenant struct {
	known
	number    int
	idleFrom  int // the day from which on it sends nothing any more; 0: it never stops
	deleteOn  int // the day on which it is deleted; 0: it never is
	deleted   bool
	tier      string // that it wants
	otherTier string // that it sometimes changes to; empty: never
}

// tiers in the order of Kept.Tiers.
var tiers = []string{"indie", "bootstrapper", "compliance", "scale"}

// found makes two organizations of each tier. One sometimes goes up and
// down again, one down and up, one stops after a while, and one is deleted.
func (r *run) found(ctx context.Context, receiver string) error {
	for n, tier := range slices.Concat(tiers, tiers) {
		t := &tenant{number: n, tier: tier, known: known{"number": fmt.Sprint(n), "name": fmt.Sprintf("%s %d", tier, n), "tier": tier, "receiver": receiver}}
		if err := r.ask(ctx, t.known, founding...); err != nil {
			return err
		}
		switch n {
		case 4:
			t.otherTier = "bootstrapper"
		case 5:
			t.otherTier = "indie"
		case 6:
			t.deleteOn = 60
		case 7:
			t.idleFrom = 45
		}
		if t.otherTier != "" {
			if err := r.ask(ctx, t.known, billing); err != nil {
				return err
			}
		}
		r.tenants = append(r.tenants, t)
	}
	return nil
}

// passOf is a tenant's day: somebody guesses at its owner's password, who
// then signs in.
func (r *run) passOf(ctx context.Context, t *tenant) error {
	if t.deleted {
		return nil
	}
	if t.deleteOn > 0 && r.day >= t.deleteOn {
		t.deleted = true
		return r.ask(ctx, t.known, request{"", http.MethodDelete, "/organizations/{organization}", ""})
	}
	if err := r.changeTier(ctx, t); err != nil {
		return err
	}
	if t.idleFrom == 0 || r.day < t.idleFrom {
		if err := r.use(ctx, t); err != nil {
			return err
		}
	}
	owner := "owner" + t.known["number"] + "@example.com"
	if status, err := r.browser.SignIn(ctx, owner, "wrong "+password); err != nil || status == http.StatusSeeOther {
		return fmt.Errorf("a guess was answered %d: %w", status, err)
	}
	status, err := r.browser.SignIn(ctx, owner, password)
	if err == nil && status != http.StatusSeeOther {
		err = fmt.Errorf("%s can't sign in: answered %d", owner, status)
	}
	return err
}

// use sends a tenant's records of a day. Once a month it has another key,
// another colleague and what is decided about it.
func (r *run) use(ctx context.Context, t *tenant) error {
	now := r.clock.Now()
	if r.day%r.Month == 0 {
		before := maps.Clone(t.known)
		maps.Copy(t.known, known{"month": fmt.Sprint(r.day / r.Month), "now": stamp(now), "soon": stamp(now.Add(10 * day))})
		if err := errors.Join(r.ask(ctx, t.known, newKey), r.awaitKey(ctx, t.known["key secret"])); err != nil {
			return err
		}
		if err := r.ask(ctx, t.known, append(slices.Clone(monthly), newColleague)...); err != nil {
			return err
		}
		if before["key"] != "" {
			if err := r.ask(ctx, before, oldKey, oldColleague); err != nil {
				return err
			}
		}
	}
	for post := range 2 + t.number%3 {
		if err := r.deliver(ctx, t.known["key secret"], body(t.number, r.day, post, now), fmt.Sprintf("%d-%d-%d", t.number, r.day, post)); err != nil {
			return err
		}
	}
	return nil
}

// deliver sends entries that all are accepted.
func (r *run) deliver(ctx context.Context, key string, body []byte, name string) error {
	accepted, err := r.api.Deliver(ctx, key, client.Batch{Body: body, IdempotencyKey: name})
	if err == nil && accepted.Rejected > 0 {
		err = fmt.Errorf("%d entries were rejected: %v", accepted.Rejected, accepted.Errors)
	}
	r.accepted++
	return err
}

// awaitKey returns once a new key is in force. On a busy machine that
// may take longer than its creation waits.
func (r *run) awaitKey(ctx context.Context, key string) error {
	return until(ctx, "a new key is in force", func(ctx context.Context) (bool, error) {
		_, err := r.api.Logs(ctx, key, client.LogsQuery{})
		if isProblem(err, http.StatusUnauthorized) {
			return false, nil
		}
		return true, err
	})
}

// monthsOfTier is how long a tenant that changes its tier keeps one:
// longer than a billing period, at whose end a smaller tier takes effect.
const monthsOfTier = 2

// latestRetention is the retention of an organization's latest block.
const latestRetention = `SELECT retention FROM ingest.blocks WHERE organization = $1 ORDER BY received_at DESC LIMIT 1`

// changeTier changes a tenant to its other tier, in the middle of a month.
// The change before must have taken effect, and set the retention of what
// it sends.
func (r *run) changeTier(ctx context.Context, t *tenant) error {
	if t.otherTier == "" || r.day%(monthsOfTier*r.Month) != r.Month/2 {
		return nil
	}
	token, organization := t.known["billing secret"], t.known["organization"]
	found, err := r.api.Subscription(ctx, token, organization)
	if err != nil {
		return err
	}
	if _, err := r.db.Exec(ctx, asSystem); err != nil {
		return err
	}
	var kept int
	if err := r.db.QueryRow(ctx, latestRetention, organization).Scan(&kept); err != nil {
		return err
	}
	if want := r.Kept.Tiers[slices.Index(tiers, t.tier)]; found.Tier != t.tier || found.RetentionDays != want || kept != want {
		return fmt.Errorf("an organization wanted %s, with %d days: it has %s with %d, and what it sent last is kept for %d",
			t.tier, want, found.Tier, found.RetentionDays, kept)
	}
	t.tier, t.otherTier = t.otherTier, t.tier
	_, err = r.api.Subscribe(ctx, token, organization, t.tier)
	return err
}

// changeVisitors adds new visitors, who send entries, and deletes last
// month's.
func (r *run) changeVisitors(ctx context.Context, month int) error {
	before := r.visitors
	r.visitors = known{"month": fmt.Sprint(month), "host": r.tenants[0].known["organization"]}
	if err := r.ask(ctx, r.visitors, arriving...); err != nil {
		return err
	}
	for key, project := range map[string]string{"trial's key secret": "tried", "key secret": "project"} {
		if err := r.awaitKey(ctx, r.visitors[key]); err != nil {
			return err
		}
		if err := r.deliver(ctx, r.visitors[key], body(len(r.tenants), r.day, 0, r.clock.Now()), r.visitors[project]); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return r.ask(ctx, before, leaving...)
}

// exceedBudget sets a budget of one byte for the visiting project, and sends
// until it refuses.
func (r *run) exceedBudget(ctx context.Context) error {
	if err := r.ask(ctx, r.visitors, smallBudget); err != nil {
		return err
	}
	return until(ctx, "a budget refuses a request", func(ctx context.Context) (bool, error) {
		_, err := r.api.Post(ctx, r.visitors["key secret"], client.Batch{Body: body(len(r.tenants), r.day, 1, r.clock.Now())})
		if isProblem(err, http.StatusTooManyRequests) {
			return strings.Contains(err.Error(), "quota_exceeded"), nil // else it asks for time to count
		}
		r.accepted++
		return false, err
	})
}

// askForPasskey begins a sign-in by a passkey and abandons it.
func (r *run) askForPasskey(ctx context.Context) error {
	status, err := r.browser.Post(ctx, "/sign-in/passkey/options", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("nobody is asked for a passkey: answered %d", status)
	}
	return err
}

// publishInvalidRecords publishes what a failing producer leaves of a
// tenant: an unreadable record, which is parked, and the first part of a
// request whose second never comes.
func (r *run) publishInvalidRecords(ctx context.Context, t *tenant) (err error) {
	out, err := publisher.New(publisher.Config{Brokers: []string{r.broker.Addr()}}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	unreadable, incomplete := t.record(r.clock.Now(), 1), t.record(r.clock.Now(), 2)
	unreadable.Metadata[contract.HeaderBytes] = "many"
	r.accepted += 2
	_, err = out.PublishContext(ctx, contract.TopicLogs, unreadable, incomplete)
	return err
}

// record is the first of so many parts of a request.
func (t *tenant) record(now time.Time, parts int) *message.Message {
	line := routine(now, t.number, 1)
	logs := contract.LogsAccepted{
		Batch: uuid.Must(uuid.NewV7()).String(), Part: 1, Parts: parts, Organization: t.known["organization"], Project: t.known["project"],
		Environment: "prod", Key: t.known["key"], Source: "weir/ingest", Time: now, Entries: 1, Bytes: int64(len(line)), Lines: []byte(line + "\n"),
	}
	m := message.NewMessage(logs.ID(), logs.Lines)
	m.Metadata = logs.Headers()
	m.Metadata[bus.KeyMetadata] = logs.RecordKey(1)
	return m
}

// body of a post: mostly routine entries, some late ones, some daily
// errors, and some new kinds of errors.
func body(tenant, day, post int, now time.Time) []byte {
	const entries = 40
	all := make([]string, entries)
	for n := range all {
		at := now.Add(-time.Duration(n) * time.Second)
		switch {
		case n < kindsOfPost:
			all[n] = failure(at, kindOf(tenant, day, post, n))
		case n%10 == 5:
			all[n] = failure(at, usual[(tenant+n)%len(usual)])
		case n%10 == 6:
			all[n] = routine(at.Add(-3*24*time.Hour), tenant, n) // came late
		default:
			all[n] = routine(at, tenant, n)
		}
	}
	return []byte(`{"logs":[` + strings.Join(all, ",") + `]}`)
}

func routine(at time.Time, tenant, n int) string {
	return fmt.Sprintf(`{"timestamp":%q,"level":"info","message":"cart %d of shop %d was opened"}`, stamp(at), n, tenant)
}

func failure(at time.Time, kind string) string {
	return fmt.Sprintf(`{"timestamp":%q,"level":"error","message":"checkout failed",
		"error":{"type":%q,"message":"it broke","stack_trace":["at com.acme.shop.%s.total(Cart.java:41)"]}}`, stamp(at), kind, kind)
}

func stamp(at time.Time) string { return at.UTC().Format(subject.StampForm) }

// usual are the errors of every day.
var usual = []string{"TimeoutError", "CartError", "PaymentDeclined"}

// kindsOfPost is the number of new kinds.
const kindsOfPost = 3

// kindOf returns a kind of error that only this post has, for years.
func kindOf(tenant, day, post, number int) string {
	return subject.Letters(int64(((day*8+tenant)*4+post)*kindsOfPost+number)) + "Error"
}

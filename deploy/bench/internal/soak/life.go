package soak

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/google/uuid"

	"github.com/weirlog/weir/deploy/bench/internal/subject"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/shared/bus/publisher"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/measure"
)

// life.yaml is who lives, and what is asked for.
//
//go:embed life.yaml
var lifeText []byte

type life struct {
	Tenants []*tenant
	Asks    map[string][]string // by occasion; bounded by life.yaml
}

// password of all people.
const password = "forty-two weirs upstream"

// known is what a tenant or the visitors are called.
type known map[string]string

// ask makes the requests of an occasion, each until the modules know what it
// is about. Names in braces stand for what is known.
func (r *run) ask(ctx context.Context, about known, occasion string) error {
	for _, line := range r.Asks[occasion] {
		makes, rest, _ := strings.Cut(line, "= ")
		request := os.Expand(rest, func(name string) string { return about[name] })
		made, err := r.askOnce(ctx, request)
		if err != nil {
			return fmt.Errorf("%s: %w", request, err)
		}
		if makes = strings.TrimSpace(makes); makes != "" {
			about[makes], about[makes+" secret"] = made.ID, made.Key+made.Token
		}
	}
	return nil
}

// made is what a request has made.
type made struct{ ID, Key, Token string }

func (r *run) askOnce(ctx context.Context, request string) (found made, err error) {
	method, rest, _ := strings.Cut(request, " ")
	path, body, _ := strings.Cut(rest, " ")
	header := map[string]string{"Authorization": "Bearer " + r.app.Env().OperatorToken, "Content-Type": "application/json"}
	if method == http.MethodPost && strings.HasPrefix(path, "/organizations/") {
		header["Idempotency-Key"] = body
	}
	return found, measure.Await(ctx, "what it is about is known", func(ctx context.Context) (bool, error) {
		answer, err := r.api.Call(ctx, client.Request{Method: method, Path: path, Header: header, Body: []byte(body)})
		if err == nil {
			err = answer.Problem()
		}
		if isProblem(err, http.StatusNotFound) {
			return false, nil
		}
		if err == nil && len(answer.Body) > 0 {
			err = json.Unmarshal(answer.Body, &found)
		}
		return true, err
	})
}

func isProblem(err error, status int) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && problem.Status == status
}

// A tenant is an organization with a project, and its behavior.
type tenant struct {
	Tier      string // that it wants
	OtherTier string `yaml:"other_tier"` // that it sometimes changes to; empty: never
	IdleFrom  int    `yaml:"idle_from"`  // the day from which on it sends nothing any more; 0: it never stops
	DeleteOn  int    `yaml:"delete_on"`  // the day on which it is deleted; 0: it never is

	known
	number  int
	deleted bool
}

// tiers in the order of Kept.Tiers.
var tiers = []string{"indie", "bootstrapper", "compliance", "scale"}

// found makes the tenants.
func (r *run) found(ctx context.Context, receiver string) error {
	for n, t := range r.Tenants {
		t.number = n
		t.known = known{"number": fmt.Sprint(n), "name": fmt.Sprintf("%s %d", t.Tier, n), "tier": t.Tier,
			"email": fmt.Sprintf("owner%d@example.com", n), "password": password, "receiver": receiver}
		if err := r.ask(ctx, t.known, "founding"); err != nil {
			return err
		}
		if t.OtherTier != "" {
			if err := r.ask(ctx, t.known, "billing"); err != nil {
				return err
			}
		}
	}
	return nil
}

// passOf is a tenant's day: somebody guesses at its owner's password, who
// then signs in.
func (r *run) passOf(ctx context.Context, t *tenant) error {
	if t.deleted {
		return nil
	}
	if t.DeleteOn > 0 && r.day >= t.DeleteOn {
		t.deleted = true
		return r.ask(ctx, t.known, "closing")
	}
	if t.IdleFrom == 0 || r.day < t.IdleFrom {
		if err := r.use(ctx, t); err != nil {
			return err
		}
	}
	return r.signIn(ctx, t.known["email"])
}

// signIn guesses a password, and then knows it.
func (r *run) signIn(ctx context.Context, email string) error {
	r.signing.Lock()
	defer r.signing.Unlock()
	if status, err := r.browser.SignIn(ctx, email, "wrong "+password); err != nil || status == http.StatusSeeOther {
		return errors.Join(fmt.Errorf("a guess for %s was answered %d", email, status), err)
	}
	status, err := r.browser.SignIn(ctx, email, password)
	if err != nil || status != http.StatusSeeOther {
		return errors.Join(fmt.Errorf("%s can't sign in: answered %d", email, status), err)
	}
	return nil
}

// use sends a tenant's records of a day. Once a month it has another key,
// another colleague and what is decided about it.
func (r *run) use(ctx context.Context, t *tenant) error {
	now := r.clock.Now()
	if r.day%r.Month == 0 {
		before := maps.Clone(t.known)
		maps.Copy(t.known, known{"month": fmt.Sprint(r.day / r.Month), "now": stamp(now), "soon": stamp(now.Add(10 * day))})
		if err := errors.Join(r.ask(ctx, t.known, "key"), r.awaitKey(ctx, t.known["key secret"])); err != nil {
			return err
		}
		if err := r.ask(ctx, t.known, "monthly"); err != nil {
			return err
		}
		if before["key"] != "" {
			if err := r.ask(ctx, before, "replaced"); err != nil {
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
	r.accepted.Add(1)
	return err
}

// awaitKey returns once a new key is in force. On a busy machine that
// may take longer than its creation waits.
func (r *run) awaitKey(ctx context.Context, key string) error {
	return measure.Await(ctx, "a new key is in force", func(ctx context.Context) (bool, error) {
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
	if t.OtherTier == "" || r.day%(monthsOfTier*r.Month) != r.Month/2 {
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
	if want := r.Kept.Tiers[slices.Index(tiers, t.Tier)]; found.Tier != t.Tier || found.RetentionDays != want || kept != want {
		return fmt.Errorf("an organization wanted %s, with %d days: it has %s with %d, and what it sent last is kept for %d",
			t.Tier, want, found.Tier, found.RetentionDays, kept)
	}
	t.Tier, t.OtherTier = t.OtherTier, t.Tier
	_, err = r.api.Subscribe(ctx, token, organization, t.Tier)
	return err
}

// changeVisitors adds new visitors, who send entries, and deletes last
// month's.
func (r *run) changeVisitors(ctx context.Context, month int) error {
	before := r.visitors
	r.visitors = known{"month": fmt.Sprint(month), "host": r.Tenants[0].known["organization"]}
	if err := r.ask(ctx, r.visitors, "arriving"); err != nil {
		return err
	}
	for key, project := range map[string]string{"trial's key secret": "tried", "key secret": "project"} {
		if err := r.awaitKey(ctx, r.visitors[key]); err != nil {
			return err
		}
		if err := r.deliver(ctx, r.visitors[key], body(len(r.Tenants), r.day, 0, r.clock.Now()), r.visitors[project]); err != nil {
			return err
		}
	}
	if before == nil {
		return nil
	}
	return r.ask(ctx, before, "leaving")
}

// exceedBudget sets a budget of one byte for the visiting project, and sends
// until it refuses.
func (r *run) exceedBudget(ctx context.Context) error {
	if err := r.ask(ctx, r.visitors, "budget"); err != nil {
		return err
	}
	return measure.Await(ctx, "a budget refuses a request", func(ctx context.Context) (bool, error) {
		_, err := r.api.Post(ctx, r.visitors["key secret"], client.Batch{Body: body(len(r.Tenants), r.day, 1, r.clock.Now())})
		if isProblem(err, http.StatusTooManyRequests) {
			return strings.Contains(err.Error(), "quota_exceeded"), nil // else it asks for time to count
		}
		r.accepted.Add(1)
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
	r.accepted.Add(2)
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
	return subject.Record(logs.RecordKey(1), logs.Headers(), logs.Lines)
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
		case n%10 == 6:
			all[n] = routine(at.Add(-3*24*time.Hour), tenant, n) // came late
		case n%3 == 0: // so many that bounds by number are reached in little time
			all[n] = failure(at, usual[(tenant+n/3)%len(usual)])
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

package soak

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/client"
)

// A tenant is an organization with a project, and its behavior.
type tenant struct {
	number       int
	operator     string
	organization string
	project      string
	owner        string // e-mail address
	key          client.APIKey
	idleFrom     int // the day from which on it sends nothing any more; 0: it never stops
	deleteOn     int // the day on which it is deleted; 0: it never is
	deleted      bool
	tier         string // that it wants
	otherTier    string // that it sometimes changes to; empty: never
	billing      string // token that changes its tier
	webhook      string
	colleague    string // who is there for a month
}

// The days on which one tenant stops, and another is deleted.
const (
	idleAfter = 45
	deletedOn = 60
)

// newTenants makes two organizations of each tier. One sometimes goes up and
// down again, one down and up, one stops after a while, and one is deleted.
func newTenants(ctx context.Context, api *client.Client, operator, receiver string) (tenants []*tenant, err error) {
	for n, tier := range slices.Concat(tiers, tiers) {
		name := fmt.Sprintf("%s %d", tier, n)
		organization, err := api.CreateOrganization(ctx, operator, name, tier)
		if err != nil {
			return nil, err
		}
		project, err := api.CreateProject(ctx, operator, organization.ID, name)
		if err != nil {
			return nil, err
		}
		t := &tenant{number: n, operator: operator, organization: organization.ID, project: project.ID, owner: fmt.Sprintf("owner%d@example.com", n), tier: tier}
		err = api.CreateMember(ctx, operator, client.NewMember{
			Organization: organization.ID, Email: t.owner, Name: name, Role: "owner", Password: password,
		})
		if err != nil {
			return nil, err
		}
		if err := errors.Join(t.plan(ctx, api), t.subscribe(ctx, api, receiver)); err != nil {
			return nil, err
		}
		tenants = append(tenants, t)
	}
	return tenants, nil
}

// plan decides the tenant's behavior.
func (t *tenant) plan(ctx context.Context, api *client.Client) error {
	switch t.number {
	case 4:
		return t.changesTo(ctx, api, "bootstrapper")
	case 5:
		return t.changesTo(ctx, api, "indie")
	case 6:
		t.deleteOn = deletedOn
	case 7:
		t.idleFrom = idleAfter
	}
	return nil
}

// changesTo sets the tier to which the tenant changes.
func (t *tenant) changesTo(ctx context.Context, api *client.Client, tier string) error {
	token, err := api.CreateServiceToken(ctx, t.operator, t.organization, "billing", "billing:read", "billing:write")
	t.otherTier, t.billing = tier, token.Token
	return err
}

// end deletes the tenant on its day.
func (t *tenant) end(ctx context.Context, api *client.Client, day int) error {
	if t.deleted || t.deleteOn == 0 || day < t.deleteOn {
		return nil
	}
	t.deleted = true
	return api.DeleteOrganization(ctx, t.operator, t.organization)
}

// live sends a tenant's records of a day, and returns their number.
// Once a month it rotates its key and changes decisions.
func (t *tenant) live(ctx context.Context, api *client.Client, now time.Time, day, month int) (records int64, err error) {
	if t.idleFrom > 0 && day >= t.idleFrom {
		return 0, nil
	}
	if day%month == 0 {
		if err := errors.Join(t.changeKey(ctx, api), t.decideMonth(ctx, api, now, day/month)); err != nil {
			return 0, err
		}
	}
	for post := range 2 + t.number%3 {
		batch := client.Batch{Body: body(t.number, day, post, now), IdempotencyKey: fmt.Sprintf("%d-%d-%d", t.number, day, post)}
		accepted, err := api.Deliver(ctx, t.key.Key, batch)
		if err != nil {
			return records, err
		}
		if accepted.Rejected > 0 {
			return records, fmt.Errorf("%d entries were rejected: %v", accepted.Rejected, accepted.Errors)
		}
		records++
	}
	return records, nil
}

// changeKey makes a new key, and revokes the old one.
func (t *tenant) changeKey(ctx context.Context, api *client.Client) error {
	old := t.key
	var err error
	if t.key, err = api.CreateAPIKey(ctx, t.operator, t.project, "prod", "a month's key"); err != nil {
		return err
	}
	if err := awaitKey(ctx, api, t.key.Key); err != nil || old.ID == "" {
		return err
	}
	return api.RevokeAPIKey(ctx, t.operator, old.ID, "a new month")
}

// awaitKey returns once a new key is in force. On a busy machine that
// may take longer than its creation waits.
func awaitKey(ctx context.Context, api *client.Client, key string) error {
	return until(ctx, "a new key is in force", func(ctx context.Context) (bool, error) {
		_, err := api.Logs(ctx, key, client.LogsQuery{})
		if isProblem(err, http.StatusUnauthorized) {
			return false, nil
		}
		return true, err
	})
}

func isProblem(err error, status int) bool {
	var problem *client.Problem
	return errors.As(err, &problem) && problem.Status == status
}

// A console is where people sign in, each time with an unknown browser.
type console struct {
	url  string
	http *http.Client
}

func newConsole(env allinone.DevEnv) (console, error) {
	authorities, err := client.Authorities(env.CAFile)
	if err != nil {
		return console{}, err
	}
	return console{env.ConsoleURL, &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// password of all people.
const password = "forty-two weirs upstream"

// signIn tries to sign in, and returns the answer.
func (c console) signIn(ctx context.Context, email, password string) (status int, err error) {
	return c.post(ctx, "/sign-in", url.Values{"email": {email}, "password": {password}})
}

// askForPasskey begins a sign-in by a passkey and abandons it.
func (c console) askForPasskey(ctx context.Context) error {
	status, err := c.post(ctx, "/sign-in/passkey/options", nil)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("nobody is asked for a passkey: answered %d", status)
	}
	return err
}

func (c console) post(ctx context.Context, path string, form url.Values) (status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, strings.NewReader(form.Encode()))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	_, err = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode, err
}

// visit signs the tenant's owner in, after a wrong password.
func (t *tenant) visit(ctx context.Context, console console) error {
	if status, err := console.signIn(ctx, t.owner, "wrong "+password); err != nil || status == http.StatusSeeOther {
		return fmt.Errorf("a guess was answered %d: %w", status, err)
	}
	status, err := console.signIn(ctx, t.owner, password)
	if err == nil && status != http.StatusSeeOther {
		err = fmt.Errorf("%s can't sign in: answered %d", t.owner, status)
	}
	return err
}

// A decision is a change by an operator, billing or an owner, by the
// API. Names in braces stand for its subject.
type decision struct{ method, path, body string }

// monthly decisions are made about each tenant every month.
var monthly = []decision{
	{http.MethodPost, "/organizations/{organization}/grants", `{"amount":1000000,"reason":"gift {number}","expires_at":"{soon}"}`},
	{http.MethodPost, "/organizations/{organization}/adjustments", `{"amount":-1000,"reason":"mistake {number}"}`},
	{http.MethodPost, "/organizations/{organization}/webhooks/{webhook}/replay", `{"since":"{now}"}`},
	{http.MethodPut, "/organizations/{organization}/thresholds", `{"percents":[50,90]}`},
	{http.MethodPut, "/organizations/{organization}/security-policy", `{"leaked_keys":"rotate","plain_http_keys":"flag"}`},
	{http.MethodPost, "/invitations", `{"organization":"{organization}","email":"guest-{number}@example.com","role":"viewer"}`},
	{http.MethodPatch, "/projects/{project}", `{"name":"shop {number}"}`},
}

// decide makes a decision once. It tries again while a module doesn't
// know the subject yet.
func decide(ctx context.Context, api *client.Client, token string, d decision) (made struct{ ID string }, err error) {
	header := map[string]string{"Authorization": "Bearer " + token, "Content-Type": "application/json"}
	if d.method == http.MethodPost && strings.HasPrefix(d.path, "/organizations/") {
		header["Idempotency-Key"] = d.body
	}
	request := client.Request{Method: d.method, Path: d.path, Header: header, Body: []byte(d.body)}
	err = until(ctx, d.method+" "+d.path+" finds what it is about", func(ctx context.Context) (bool, error) {
		answer, err := api.Call(ctx, request)
		if err == nil {
			err = answer.Problem()
		}
		if isProblem(err, http.StatusNotFound) {
			return false, nil
		}
		if err == nil && len(answer.Body) > 0 {
			err = json.Unmarshal(answer.Body, &made)
		}
		return true, err
	})
	if err != nil {
		err = fmt.Errorf("%s %s %s: %w", d.method, d.path, d.body, err)
	}
	return made, err
}

// about replaces the names by the subject.
func (d decision) about(names ...string) decision {
	replacer := strings.NewReplacer(names...)
	return decision{d.method, replacer.Replace(d.path), replacer.Replace(d.body)}
}

// subscribe adds a webhook that sends the tenant's facts to a receiver.
func (t *tenant) subscribe(ctx context.Context, api *client.Client, receiver string) error {
	webhook, err := decide(ctx, api, t.operator, decision{http.MethodPost, "/organizations/" + t.organization + "/webhooks",
		fmt.Sprintf(`{"url":%q,"events":["error_group.created","period.closed","statement.ready"]}`, receiver)})
	t.webhook = webhook.ID
	return err
}

// decideMonth makes the decisions of a month, adds a colleague and
// removes the one of the month before.
func (t *tenant) decideMonth(ctx context.Context, api *client.Client, now time.Time, month int) error {
	soon := now.Add(10 * day)
	for _, d := range monthly {
		d = d.about("{organization}", t.organization, "{project}", t.project, "{webhook}", t.webhook, "{now}", stamp(now), "{soon}", stamp(soon),
			"{number}", fmt.Sprintf("%d-%d", t.number, month))
		if _, err := decide(ctx, api, t.operator, d); err != nil {
			return err
		}
	}
	return t.changeColleague(ctx, api, month)
}

func (t *tenant) changeColleague(ctx context.Context, api *client.Client, month int) error {
	colleague, err := decide(ctx, api, t.operator, decision{http.MethodPost, "/members", fmt.Sprintf(
		`{"organization":%q,"email":"colleague%d-%d@example.com","name":"Colleague","role":"developer","password":%q}`, t.organization, t.number, month, password)})
	if err == nil && t.colleague != "" {
		_, err = decide(ctx, api, t.operator, decision{http.MethodPost, "/members/" + t.colleague + "/remove", ""})
	}
	t.colleague = colleague.ID
	return err
}

// tiers in the order of Kept.Tiers.
var tiers = []string{"indie", "bootstrapper", "compliance", "scale"}

// monthsOfTier is how long a tenant that changes its tier keeps one:
// longer than a billing period, at whose end a smaller tier takes effect.
const monthsOfTier = 2

// changeTier changes a tenant to its other tier, in the middle of a
// month. The change before must have taken effect.
func (r *run) changeTier(ctx context.Context, t *tenant) error {
	if t.otherTier == "" || r.day%(monthsOfTier*r.Month) != r.Month/2 {
		return nil
	}
	if err := r.checkTier(ctx, t); err != nil {
		return err
	}
	t.tier, t.otherTier = t.otherTier, t.tier
	_, err := r.api.Subscribe(ctx, t.billing, t.organization, t.tier)
	return err
}

// latestRetention is the retention of an organization's latest block.
const latestRetention = `SELECT retention FROM ingest.blocks WHERE organization = $1 ORDER BY received_at DESC LIMIT 1`

// checkTier returns an error if the tier that a tenant chose is not in
// force, or does not set the retention of what it sends.
func (r *run) checkTier(ctx context.Context, t *tenant) error {
	found, err := r.api.Subscription(ctx, t.billing, t.organization)
	if err != nil {
		return err
	}
	if _, err := r.db.Exec(ctx, asSystem); err != nil {
		return err
	}
	var kept int
	if err := r.db.QueryRow(ctx, latestRetention, t.organization).Scan(&kept); err != nil {
		return err
	}
	if want := r.Kept.Tiers[slices.Index(tiers, t.tier)]; found.Tier != t.tier || found.RetentionDays != want || kept != want {
		return fmt.Errorf("an organization wanted %s, with %d days: it has %s with %d, and what it sent last is kept for %d",
			t.tier, want, found.Tier, found.RetentionDays, kept)
	}
	return nil
}

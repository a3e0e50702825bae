package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

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

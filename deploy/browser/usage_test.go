//go:build browser

package browser

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/client"
)

// By keyboard only, a refused customer finds out who used what, which
// request exhausted the allowance, and what ends that.
func TestUsageOfAnExhaustedPeriod(t *testing.T) {
	t.Setenv("WEIR_TIER_INDIE_BYTES", "2000")
	t.Setenv("WEIR_INGEST_OUTCOMES_INTERVAL", "100ms")
	in := newInstallation(t)
	created, err := in.api.CreateOrganization(t.Context(), in.token, "Acme", "indie")
	must(t, err)
	in.addMember(t, created.ID, "Ada Owner", "owner", "ada@acme.example", ownerPassword)
	project, err := in.api.CreateProject(t.Context(), in.token, created.ID, "Checkout")
	must(t, err)
	key, err := in.api.CreateAPIKey(t.Context(), in.token, project.ID, "prod", "pods in Frankfurt")
	must(t, err)
	in.send(t, key.Key, entry{Level: "info", Message: "order 4711 was paid"})
	_, err = in.api.Post(t.Context(), key.Key, client.Batch{Body: []byte(
		`{"logs":[{"timestamp":"2026-11-20T10:00:00Z","level":"info","message":"` + strings.Repeat("x", 3000) + `"}]}`)})
	var problem *client.Problem
	if !errors.As(err, &problem) || problem.Code != "quota_exceeded" {
		t.Fatalf("3,000 bytes of 2,000: %v", err)
	}

	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn("ada@acme.example", ownerPassword)
	b.repeat("A request needed more", func() { b.open("/console/usage") })
	b.inspect("exhausted usage", "/console/usage")
	b.await(`document.querySelectorAll("svg.chart rect").length === 1`)
	b.awaitText("Checkout")
	b.repeat("over the allowance", func() {
		b.open("/console/usage")
		b.leave("a", "by outcome", "Usage")
	})
	b.press("summary", "The same as a table")
	b.leave("a", time.Now().UTC().Format(time.DateOnly), "Usage")
	b.awaitText("Usage by hour on")
	b.check("usage by hour")
	b.leave("a", "Why requests were refused", "Why requests were refused")
	b.awaitText("It needed")
	b.press("summary", "Who had used the allowance by then")
	b.awaitText("Checkout")
	b.check("why requests were refused")
	b.open("/console/usage")
	b.leave("a", "Statements of earlier periods", "Statements")
	b.check("no statements")
	b.open("/console/usage")
	b.leave("a", "Preview another plan", "Another plan")
	b.leave("button", "Preview", "Another plan")
	b.awaitText("Past periods with it")
	b.check("preview of a plan")
	b.blameless("usage")
}

// By keyboard only, the operator finds out which organizations exist
// and in what state they are.
func TestOrganizations(t *testing.T) {
	g, host := newGround(t), ""
	t.Run("founded", func(t *testing.T) {
		in := g.start(t)
		host = in.addOwner(t, "Host", "Olga Operator", "olga@host.example", ownerPassword)
		in.addOwner(t, "Acme", "Ada Owner", "ada@acme.example", ownerPassword)
	})
	t.Setenv("WEIR_OPERATING_ORGANIZATION", host)
	in := g.start(t)
	b := openTab(t, startChromium(t, in.origin), in.origin)
	b.signIn("olga@host.example", ownerPassword)
	b.leave("a", "Usage", "Usage")
	b.leave("a", "All organizations", "All organizations")
	b.awaitText(host)
	b.await(`document.querySelectorAll("tbody tr").length === 2`)
	b.check("all organizations")
	b.fill("Id contains", host)
	b.leave("button", "Search", "All organizations")
	b.await(`document.querySelectorAll("tbody tr").length === 1`)
	b.leave("a", "scale: another plan for "+host, "Another plan")
	b.fill("Quota of a period", "1.5 KiB")
	b.fill("Periods begin on day", "31")
	b.leave("button", "Preview", "Another plan")
	b.awaitText("Periods begin on day 31 of the month")
	b.check("a plan of one's own")
	b.leave("button", "Change to scale", "Another plan")
	b.awaitText("The plan is decided")
	b.awaitText("on day 31 from the end of this one on")
	b.check("a plan that is decided")
	b.open("/console/usage/organizations")
	b.choose("State", "suspended")
	b.leave("button", "Search", "All organizations")
	b.awaitText("None matches")
	b.check("no organizations")
	b.blameless("all organizations")
}

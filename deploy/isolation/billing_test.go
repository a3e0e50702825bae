package isolation

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants/mailtest"
)

// withMail adds a mail server to a world.
func withMail(t *testing.T) (*mailtest.Server, func(*allinone.Modules)) {
	t.Helper()
	office := mailtest.OpenPlain(t)
	return office, func(set *allinone.Modules) {
		set.Tenants.Mail.URL, set.Tenants.Mail.From = httpapi.Secret("smtp://"+office.Address), "Weir <weir@example.com>"
	}
}

// bill puts the tenant's name into everything that billing decides
// about an organization: reasons of grants and adjustments, a webhook,
// and an exhausted budget, which is mailed to its owner.
func (of *tenant) bill(t *testing.T, organization, project string) {
	t.Helper()
	books := "/v1/organizations/" + organization
	of.world.operate(t, "POST", books+"/webhooks", map[string]any{
		"url":    "https://" + strings.ToLower(of.name) + ".invalid/" + of.name,
		"events": []string{"quota.exhausted", "budget.exhausted", "error_group.created", "period.closed", "statement.ready"},
	})
	of.world.operate(t, "POST", books+"/grants", map[string]any{"amount": 7, "reason": of.name + "'s gift"})
	of.world.operate(t, "POST", books+"/adjustments", map[string]any{"amount": -3, "reason": of.name + "'s mistake"})
	of.world.decide(t, books+"/budgets", `[{"project":"`+project+`","bytes":1}]`)
}

// testOrganization makes an organization with a test clock, named after the
// tenant, and lets one of its periods close. It returns its id.
func (of *tenant) testOrganization(t *testing.T) string {
	t.Helper()
	organization := of.world.operate(t, "POST", "/v1/organizations", map[string]any{"name": of.name + "'s test", "tier": "indie"}).get("id")
	books := "/v1/organizations/" + organization
	project := of.world.operate(t, "POST", "/v1/projects", map[string]any{"organization": organization, "name": of.name + "'s stage"}).get("id")
	of.world.decide(t, books+"/test-clock", `{}`)
	use := func(names string) int {
		return of.world.send(t, request{method: "POST", path: books + "/test-clock/use", body: `{"bytes":9,` + names + `}`, header: asToken(operatorToken)}).status
	}
	testenv.Eventually(t, func() error {
		if status := use(`"project":"` + project + `"`); status != http.StatusCreated {
			return fmt.Errorf("a test is charged: %d", status)
		}
		return nil
	})
	for _, member := range []string{"project", "key", "environment"} { // names that would stay in the books
		if status := use(fmt.Sprintf("%q:%q", member, of.name)); status != http.StatusNotFound && status != http.StatusBadRequest {
			t.Errorf("%s as the %s: %d", of.name, member, status)
		}
	}
	of.bill(t, organization, project)
	var clock struct{ At time.Time }
	testenv.Must(t, json.Unmarshal([]byte(of.world.operate(t, "GET", books+"/test-clock", nil).text), &clock))
	of.world.operate(t, "PUT", books+"/test-clock", map[string]any{"at": clock.At.AddDate(0, 1, 1)})
	if got := of.world.operate(t, "GET", books+"/statements/1", nil); !strings.Contains(got.text, `"amount":-3`) {
		t.Errorf("the statement is %s", got.text)
	}
	return organization
}

// decide makes one of billing's decisions, once the ledger
// has the organization.
func (w *world) decide(t *testing.T, path, body string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := w.send(t, request{method: "PUT", path: path, body: body, header: asToken(operatorToken)}); got.status != http.StatusOK {
			return fmt.Errorf("PUT %s: %d %s", path, got.status, got.brief())
		}
		return nil
	})
}

// isMailed waits until a mail names the tenant.
func (of *tenant) isMailed(t *testing.T, office *mailtest.Server) {
	t.Helper()
	testenv.Eventually(t, func() error {
		taken := office.Taken()
		if len(taken) == 0 || !strings.Contains(strings.Join(taken, "\n"), of.name) {
			return fmt.Errorf("%d mails, and none names %s: %q", len(taken), of.name, taken)
		}
		return nil
	})
}

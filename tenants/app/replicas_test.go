package app_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/weirlog/weir/tenants/app"
)

// Two replicas, of which one publishes, decide as one.
func TestReplicas(t *testing.T) {
	w := newWorld(t)
	w.bounds = app.BoundsConfig{MaxProjects: 5}
	first, second := w.start(t, operatorToken), w.start(t, operatorToken)
	for name, test := range map[string]func(t *testing.T, first, second *process){
		"CredentialsCross": testCredentialsCross, "CodesWorkOnceAtTheSameMoment": testCodesWorkOnceAtTheSameMoment,
		"TheLastOwnerStays": testTheLastOwnerStays, "ProjectsAreLimited": testProjectsAreLimited,
	} {
		t.Run(name, func(t *testing.T) { test(t, first, second) })
	}
}

// The decision of a replica without the relay is in force in the other one,
// too, and a session at once. make bench-revocation measures how quickly.
func testCredentialsCross(t *testing.T, first, second *process) {
	acme := second.tenant(t, "Acme")
	b := first.signedIn(t, acme, "viewer")
	b.p = second
	if got := b.get(t, projectsPage); got.status != 200 {
		t.Errorf("the other replica does not let the member in: %d", got.status)
	}
	first.awaitStatus(t, acme.token, "/v1/projects", 200)
	second.must(t, 200, "POST", "/v1/service-tokens/"+acme.tokenID+"/revoke", "")
	first.awaitStatus(t, acme.token, "/v1/projects", 401)
}

// A code works once, even in two replicas at once.
func testCodesWorkOnceAtTheSameMoment(t *testing.T, first, second *process) {
	acme := first.tenant(t, "Acme")
	for round := range 3 {
		email := fmt.Sprintf("bob%d@example.com", round)
		code := first.must(t, 201, "POST", "/v1/invitations", text(invitation(acme.organization, email, "viewer"))).get("code")
		statuses := make([]int, 2)
		var group sync.WaitGroup
		for i, p := range []*process{first, second} {
			group.Go(func() {
				statuses[i] = p.browser("192.0.2.30").post(t, "/console/join", registration(code, email)).status
			})
		}
		group.Wait()
		if statuses[0]+statuses[1] != 303+422 {
			t.Errorf("round %d: %v", round, statuses)
		}
	}
}

// An organization keeps an owner, even if two
// replicas demote or remove two of them at once.
func testTheLastOwnerStays(t *testing.T, first, second *process) {
	ways := map[string]func(p *process, id string) answer{
		"demoted": func(p *process, id string) answer {
			return p.call(t, operatorToken, "PATCH", "/v1/members/"+id, `{"role":"viewer"}`)
		},
		"removed": func(p *process, id string) answer {
			return p.call(t, operatorToken, "POST", "/v1/members/"+id+"/remove", "")
		},
	}
	for name, way := range ways {
		acme := first.tenant(t, name)
		for round := range 4 {
			owners := []string{
				first.add(t, acme.organization, fmt.Sprintf("%s-a%d@example.com", name, round), "owner"),
				first.add(t, acme.organization, fmt.Sprintf("%s-b%d@example.com", name, round), "owner"),
			}
			if round > 0 { // one is left of before
				way(first, ownersOf(t, first, acme)[0])
			}
			results := make([]answer, 2)
			var group sync.WaitGroup
			for i, p := range []*process{first, second} {
				group.Go(func() { results[i] = way(p, owners[i]) })
			}
			group.Wait()
			if results[0].status+results[1].status != 200+409 || ownersOf(t, first, acme) == nil {
				t.Fatalf("%s, round %d: %d %s and %d %s", name, round, results[0].status, results[0].text, results[1].status, results[1].text)
			}
			for _, got := range results {
				if got.status == 409 && got.get("code") != "last_owner" {
					t.Errorf("refused with %s", got.text)
				}
			}
		}
	}
}

// An organization gets only so many projects, even from two
// processes at once. Repeated requests for existing ones are
// answered as before. Other organizations are unaffected.
func testProjectsAreLimited(t *testing.T, first, second *process) {
	acme, other := first.tenant(t, "Acme"), first.tenant(t, "Other") // which have one
	create := func(p *process, of tenant, name string, headers ...header) answer {
		return p.call(t, of.token, "POST", "/v1/projects", text(map[string]any{"organization": of.organization, "name": name}), headers...)
	}
	once := create(first, acme, "Once", header{"Idempotency-Key", "one"})
	var mu sync.Mutex
	var created, refused int
	var asking sync.WaitGroup
	for i := range 12 {
		asking.Go(func() {
			got := create([]*process{first, second}[i%2], acme, fmt.Sprint(i))
			mu.Lock()
			defer mu.Unlock()
			switch {
			case got.status == 201:
				created++
			case full(got, "projects", 5):
				refused++
			default:
				t.Errorf("project %d: %d %s", i, got.status, got.text)
			}
		})
	}
	asking.Wait()
	if created != 3 || refused != 9 {
		t.Errorf("%d were created, %d refused", created, refused)
	}
	if again := create(first, acme, "Once", header{"Idempotency-Key", "one"}); again.status != 201 || again.text != once.text {
		t.Errorf("the first again: %d %s", again.status, again.text)
	}
	if got := create(first, other, "Theirs"); got.status != 201 {
		t.Errorf("another organization: %d %s", got.status, got.text)
	}
}

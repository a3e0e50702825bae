package resume_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/backup"
	"github.com/weirlog/weir/deploy/client"
	"github.com/weirlog/weir/deploy/resume"
	"github.com/weirlog/weir/shared/bus/bustest"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/httpapi"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/shared/testenv/kafkatest"
	"github.com/weirlog/weir/shared/testenv/postgrestest"
	"github.com/weirlog/weir/tenants"
	tenantsapp "github.com/weirlog/weir/tenants/app"
)

// A tenant is an organization that is made after the backup.
type tenant struct {
	organization, project, key, keyID, revoked string
	bytes                                      int64
}

// tenant makes one, and sends entries of it.
func (d *drill) tenant(t *testing.T, api *client.Client, env allinone.DevEnv, name string) (made tenant) {
	t.Helper()
	organization, err := api.CreateOrganization(t.Context(), env.OperatorToken, name, "scale")
	testenv.Must(t, err)
	made.organization = organization.ID
	made.project, made.key, made.keyID = d.project(t, api, env, made.organization)
	revoked, err := api.CreateAPIKey(t.Context(), env.OperatorToken, made.project, "dev", "revoked")
	testenv.Must(t, err)
	testenv.Must(t, api.RevokeAPIKey(t.Context(), env.OperatorToken, revoked.ID, "leaked"))
	made.revoked = revoked.Key
	made.sends(t, api)
	made.awaitSeen(t, api, env)
	return made
}

// project makes a project with a key.
func (d *drill) project(t *testing.T, api *client.Client, env allinone.DevEnv, organization string) (id, secret, key string) {
	t.Helper()
	project, err := api.CreateProject(t.Context(), env.OperatorToken, organization, "Shop")
	testenv.Must(t, err)
	made, err := api.CreateAPIKey(t.Context(), env.OperatorToken, project.ID, "prod", "laptop")
	testenv.Must(t, err)
	return project.ID, made.Key, made.ID
}

func (m *tenant) sends(t *testing.T, api *client.Client) {
	t.Helper()
	body := fmt.Sprintf(`{"logs": [{"timestamp": %q, "level": "error", "message": "m", "error": {"type": "E", "message": "e"}}]}`,
		time.Now().UTC().Format(time.RFC3339Nano))
	testenv.Eventually(t, func() error {
		accepted, err := api.Post(t.Context(), m.key, client.Batch{Body: []byte(body)})
		m.bytes += accepted.BytesUsed
		return err
	})
}

// sends sends an entry of another project of the drill's organization.
func (d *drill) sends(t *testing.T, api *client.Client, of *tenant) {
	t.Helper()
	before := of.bytes
	of.sends(t, api)
	d.bytes += of.bytes - before
}

// awaitSeen waits until entries, groups and balance have what was sent.
func (m *tenant) awaitSeen(t *testing.T, api *client.Client, env allinone.DevEnv) {
	t.Helper()
	testenv.Eventually(t, func() error {
		stored := int64(0)
		err := api.EachLog(t.Context(), m.key, client.LogsQuery{Project: m.project}, func(e client.StoredEntry) error {
			stored += int64(len(e.Entry))
			return nil
		})
		groups, err1 := api.ErrorGroups(t.Context(), m.key, m.project)
		balance, err2 := api.Balance(t.Context(), env.OperatorToken, m.organization)
		if err := errors.Join(err, err1, err2); err != nil {
			return err
		}
		if stored != m.bytes || balance.Consumed != m.bytes || len(groups) != 1 {
			return fmt.Errorf("%d bytes stored, %d charged, %d groups; %d bytes were sent", stored, balance.Consumed, len(groups), m.bytes)
		}
		return nil
	})
}

// restoreTenants brings the tables of tenants back as they were at the backup.
func (d *drill) restoreTenants(t *testing.T) {
	t.Helper()
	_, err := d.connect(t).Exec(t.Context(), `DROP SCHEMA tenants CASCADE`)
	testenv.Must(t, err)
	_, err = backup.Restore(t.Context(), backup.RestoreConfig{From: d.backups(), Modules: []string{"tenants"}, Jobs: 2, DataDir: d.dir}, t.Output())
	testenv.Must(t, err)
}

// chooses runs weir resume with a choice, and returns what it said.
func (d *drill) chooses(ctx context.Context, t *testing.T, yes bool, choice resume.Choice, until string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out := &killing{word: until, kill: cancel}
	choice.ConsoleOrigin = "https://weir.example"
	err := resume.Run(ctx, resume.Config{Source: d.source(), LogPartitions: contract.DefaultLogPartitions, Choice: choice, Yes: yes}, out)
	t.Log(out.String())
	return out.String(), err
}

// A killing buffer ends the command once it has said a word.
type killing struct {
	bytes.Buffer

	word string
	kill func()
}

func (k *killing) Write(text []byte) (int, error) {
	n, err := k.Buffer.Write(text)
	if k.word != "" && strings.Contains(k.String(), k.word) {
		k.kill()
	}
	return n, err
}

// says expects some words, and an error that has some, or none.
func says(t *testing.T, said string, err error, fails string, words ...string) {
	t.Helper()
	if fails == "" && err != nil || fails != "" && (err == nil || !strings.Contains(err.Error(), fails)) {
		t.Errorf("fails with %v, want %q", err, fails)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("nothing of %q", word)
		}
	}
}

// Organizations, a project and keys were made after the backup of tenants
// that is restored. They are named, and none is touched without a choice:
// then one organization is readopted whole, across a kill, another one is
// erased, and so are a project of a known organization and its key. It is
// so too where tenants has run before anybody looked.
func TestOrphans(t *testing.T) {
	for name, ran := range map[string]bool{"at once": false, "after tenants has run": true} {
		t.Run(name, func(t *testing.T) { testOrphans(t, ran) })
	}
}

func testOrphans(t *testing.T, ran bool) {
	d := &drill{database: postgrestest.URL(t), brokers: kafkatest.Brokers(t), dir: t.TempDir()}
	t.Setenv("WEIR_DATABASE_URL", d.database)
	var kept, erased, part tenant
	d.runs(t, "before", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		d.post(t, api, env, 1)
		d.copy(t)
		kept, erased = d.tenant(t, api, env, "Kept"), d.tenant(t, api, env, "Erased")
		part.organization = env.Organization
		part.project, part.key, part.keyID = d.project(t, api, env, env.Organization)
		d.sends(t, api, &part)
	})
	d.doctorFinds(t, "knows every organization and project")
	d.restoreTenants(t)
	keyState := "in force"
	if ran {
		keyState = "gone"
		d.runs(t, "without a look", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
			made, err := api.CreateOrganization(t.Context(), env.OperatorToken, "Since", "indie")
			testenv.Must(t, err)
			testenv.Eventually(t, func() error { // as an operator sees what is lost
				_, err := api.Balance(t.Context(), env.OperatorToken, made.ID)
				return err
			})
			_, err = api.Organization(t.Context(), env.OperatorToken, kept.organization)
			var problem *client.Problem
			if !errors.As(err, &problem) || problem.Status != http.StatusNotFound {
				t.Errorf("the lost organization: %v", err)
			}
			d.refusesKey(t, api, kept.key) // it is taken back
		})
	}
	d.doctorFinds(t, kept.organization, erased.organization, "weir resume")
	said, err := d.chooses(t.Context(), t, false, resume.Choice{}, "")
	says(t, said, err, kept.organization, kept.organization, "Kept",
		kept.project, "Shop", erased.organization, part.project, "1 entries, 1 groups", keyState, "Nothing was changed")
	if !errors.Is(err, resume.ErrOrphans) {
		t.Errorf("its end does not tell: %v", err)
	}
	d.refusesChoices(t, kept, erased)

	choice := resume.Choice{Readopt: []string{kept.organization}, Owner: []string{"ada@example.com"}, Erase: []string{erased.organization}}
	if !ran {
		choice.Readopt = append(choice.Readopt, part.project)
	} else {
		choice.Erase = append(choice.Erase, part.project)
	}
	said, err = d.chooses(t.Context(), t, true, choice, "Readopted: "+kept.organization)
	says(t, said, err, "context canceled", "Readopted: "+kept.organization)
	again := choice
	choice.Readopt, choice.Owner = []string{"all"}, []string{kept.organization + "=ada@example.com"} // nothing of it is left to list
	said, err = d.chooses(t.Context(), t, true, choice, "")
	says(t, said, err, "", "https://weir.example/console/join#weirinv_", "Erased: "+erased.organization, "Done")
	code := "weirinv_" + strings.Fields(said[strings.Index(said, "#weirinv_")+len("#weirinv_"):])[0]
	said, err = d.chooses(t.Context(), t, false, resume.Choice{}, "")
	says(t, said, err, "", "Every position is in its log")
	_, err = d.chooses(t.Context(), t, false, resume.Choice{Readopt: []string{erased.organization}, Owner: []string{"ada@example.com"}}, "")
	says(t, "", err, "is not among what tenants lacks") // it is deleted
	said, err = d.chooses(t.Context(), t, false, again, "")
	says(t, said, err, "", "Nothing was changed")

	d.runs(t, "after", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		d.readopted(t, api, env, &kept, ran)
		d.joins(t, env, code)
		if ran {
			d.gone(t, part.organization, part.project)
		} else {
			d.sends(t, api, &part)
		}
		d.gone(t, erased.organization, "") // with all that its topics had
		d.refusesKey(t, api, erased.key)
	})
	_, err = d.chooses(t.Context(), t, false, again, "")
	says(t, "", err, "it has members, who invite others") // before anything is done
	_, err = d.chooses(t.Context(), t, true, resume.Choice{Readopt: []string{erased.organization}, Owner: []string{"bo@example.com"}}, "")
	says(t, "", err, "is not among what tenants lacks") // it is gone
	d.doctorFinds(t, "knows every organization and project")
	d.booked(t)
	d.named(t, "Kept", 1)
	d.named(t, "Erased", 0)
	d.namesNothing(t, erased)
	d.audited(t, kept.organization, "organization.readopted", "project.readopted", "invitation.made", "invitation.resent")
}

// refusesChoices tries choices that nobody can follow: nothing is changed.
func (d *drill) refusesChoices(t *testing.T, one, other tenant) {
	t.Helper()
	for want, choice := range map[string]resume.Choice{
		"needs an owner":            {Readopt: []string{one.organization}},
		"is to be readopted and":    {Readopt: []string{one.organization}, Erase: []string{one.organization}},
		"belongs to":                {Readopt: []string{one.project}},
		"erase that, or readopt it": {Erase: []string{one.project}},
		"is not among what tenants": {Erase: []string{"org_unknown"}},
		"is no e-mail address":      {Readopt: []string{one.organization}, Owner: []string{"ada"}},
		"use --owner=ORGANIZATION":  {Readopt: []string{one.organization, other.organization}, Owner: []string{"ada@example.com"}},
		"nobody is a member of two": {
			Readopt: []string{one.organization, other.organization},
			Owner:   []string{one.organization + "=a@b.example", other.organization + "=a@b.example"},
		},
		"that is not to be readopted": {Readopt: []string{one.organization}, Owner: []string{other.organization + "=ada@example.com"}},
	} {
		if _, err := d.chooses(t.Context(), t, true, choice, ""); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", choice, err, want)
		}
	}
}

// readopted expects a readopted organization as it was, with a key that
// works, or with none where that was taken back.
func (d *drill) readopted(t *testing.T, api *client.Client, env allinone.DevEnv, of *tenant, tookBack bool) {
	t.Helper()
	found, err := api.Organization(t.Context(), env.OperatorToken, of.organization)
	if err != nil || found.Name != "Kept" {
		t.Errorf("readopted is %+v, %v", found, err)
	}
	d.refusesKey(t, api, of.revoked)
	if tookBack {
		d.refusesKey(t, api, of.key)
		made, err := api.CreateAPIKey(t.Context(), env.OperatorToken, of.project, "prod", "another")
		testenv.Must(t, err)
		of.key = made.Key
	}
	of.awaitSeen(t, api, env)
	before := of.bytes
	of.sends(t, api)
	if of.bytes == before {
		t.Error("nothing was accepted")
	}
	of.awaitSeen(t, api, env)
}

// refusesKey expects that a key is refused, sooner or later for good.
func (d *drill) refusesKey(t *testing.T, api *client.Client, key string) {
	t.Helper()
	testenv.Eventually(t, func() error {
		_, err := api.Post(t.Context(), key, client.Batch{Body: []byte(`{"logs": [{"timestamp": "2026-11-20T12:00:00Z", "level": "info", "message": "m"}]}`)})
		var problem *client.Problem
		if errors.As(err, &problem) && problem.Status == http.StatusUnauthorized {
			return nil
		}
		return fmt.Errorf("a key that must not work: %w", err)
	})
}

// The topics are lost, too: nothing but books, entries and groups tells of
// the organization. It comes back with its id for a name and the tier of
// its books, and people need new keys.
func TestOrphansThatNothingNames(t *testing.T) {
	d := &drill{database: postgrestest.URL(t), brokers: kafkatest.Brokers(t), dir: t.TempDir()}
	t.Setenv("WEIR_DATABASE_URL", d.database)
	var of tenant
	d.runs(t, "before", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		d.post(t, api, env, 1)
		d.copy(t)
		of = d.tenant(t, api, env, "Lost")
	})
	d.restoreTenants(t)
	d.loseLogs(t)
	choice := resume.Choice{Readopt: []string{"all"}, Owner: []string{"ada@example.com"}}
	said, err := d.chooses(t.Context(), t, true, choice, "")
	says(t, said, err, "", "Readopted: "+of.organization+", "+of.project+".", "join#weirinv_")
	d.runs(t, "after", func(t *testing.T, api *client.Client, env allinone.DevEnv) {
		found, err := api.Organization(t.Context(), env.OperatorToken, of.organization)
		if err != nil || found.Name != of.organization || found.Tier != "scale" {
			t.Errorf("readopted is %+v, %v", found, err)
		}
		made, err := api.CreateAPIKey(t.Context(), env.OperatorToken, of.project, "prod", "another")
		testenv.Must(t, err)
		of.key = made.Key
		of.awaitSeen(t, api, env)
		of.sends(t, api)
		of.awaitSeen(t, api, env)
	})
	d.doctorFinds(t, "knows every organization and project")
	d.booked(t)
	choice.Readopt = []string{of.organization}
	said, err = d.chooses(t.Context(), t, true, choice, "")
	says(t, said, err, "", "join#weirinv_")
	said, err = d.chooses(t.Context(), t, true, resume.Choice{Readopt: choice.Readopt}, "")
	says(t, said, err, "needs an owner")
}

// joins has the owner come in by the link.
func (d *drill) joins(t *testing.T, env allinone.DevEnv, code string) {
	t.Helper()
	authorities, err := client.Authorities(env.CAFile)
	testenv.Must(t, err)
	browser := http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS12}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	defer browser.CloseIdleConnections()
	form := url.Values{"code": {code}, "email": {"ada@example.com"}, "name": {"Ada"}, "password": {"four words make a password"}}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, strings.TrimSuffix(env.BaseURL, "/v1")+"/console/join", strings.NewReader(form.Encode()))
	testenv.Must(t, err)
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	answer, err := browser.Do(request)
	testenv.Must(t, err)
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSeeOther {
		text, _ := io.ReadAll(answer.Body)
		t.Errorf("the owner gets %d: %s", answer.StatusCode, text)
	}
}

// gone waits until nothing is left of an erased organization or project.
func (d *drill) gone(t *testing.T, organization, project string) {
	t.Helper()
	conn := d.connect(t)
	testenv.Eventually(t, func() error {
		var entries, groups int
		var state string
		err := conn.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM ingest.blocks WHERE organization = $1 AND ($2 = '' OR project = $2)),
			(SELECT count(*) FROM grouping.error_groups WHERE organization = $1 AND ($2 = '' OR project = $2)),
			coalesce((SELECT state FROM tenants.deletions WHERE organization = $1 AND project = $2), 'none')`, organization, project).Scan(&entries, &groups, &state)
		if err == nil && (entries+groups > 0 || state != "gone") {
			err = fmt.Errorf("%d blocks and %d groups are left, and the deletion is %s", entries, groups, state)
		}
		return err
	})
}

// named expects how many facts name an organization.
func (d *drill) named(t *testing.T, name string, want int) {
	t.Helper()
	newest := map[string][]byte{}
	for _, record := range bustest.ReadAll(t, d.brokers, contract.TopicTenants) {
		newest[string(record.Key)] = record.Value
	}
	found := 0
	for _, value := range newest {
		if bytes.Contains(value, []byte(fmt.Sprintf(`"name":%q`, name))) {
			found++
		}
	}
	if found != want {
		t.Errorf("%d facts name %s, want %d", found, name, want)
	}
}

// namesNothing expects that no fact tells of what was erased, but for its ids.
func (d *drill) namesNothing(t *testing.T, of tenant) {
	t.Helper()
	newest := map[string][]byte{}
	for _, record := range bustest.ReadAll(t, d.brokers, contract.TopicTenants) {
		newest[string(record.Key)] = record.Value
	}
	for key, value := range newest {
		if bytes.Contains(value, []byte(of.organization)) && bytes.Contains(value, []byte(`"name":`)) && !bytes.Contains(value, []byte(`"name":""`)) {
			t.Errorf("%s still is %s", key, value)
		}
	}
}

// audited expects actions in the audit of an organization, each by weir resume.
func (d *drill) audited(t *testing.T, organization string, actions ...string) {
	t.Helper()
	rows, err := d.connect(t).Query(t.Context(), `SELECT line->>'action' FROM (SELECT to_jsonb(a) AS line FROM tenants.audit_events a WHERE organization = $1) l
		WHERE line::text LIKE '%weir resume, run by %'`, organization)
	testenv.Must(t, err)
	defer rows.Close()
	var found []string
	for rows.Next() {
		var action string
		testenv.Must(t, rows.Scan(&action))
		found = append(found, action)
	}
	for _, action := range actions {
		if !slices.Contains(found, action) {
			t.Errorf("the audit has %q, nothing of %q", found, action)
		}
	}
	testenv.Must(t, tenantsapp.CheckAudits(t.Context(), httpapi.Secret(d.database), organization, func(_ string, check tenants.AuditCheck) {
		for _, fault := range check.Faults {
			t.Errorf("the audit: %v", fault)
		}
	}))
}

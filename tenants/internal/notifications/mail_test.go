package notifications_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/shared/eventstore"
	"github.com/weirlog/weir/shared/pg"
	"github.com/weirlog/weir/shared/testenv"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/notifications"
	"github.com/weirlog/weir/tenants/internal/unitofwork"
	"github.com/weirlog/weir/tenants/mailtest"
)

var links = mail.NewLinks("https://weir.example", []byte("key"))

// A payer is a billing member of org_a.
type payer struct {
	pool *pgxpool.Pool
	work *unitofwork.Writer
}

// billed adds a payer, and configures mail.
func (r *room) billed(t *testing.T, office *mailtest.Server, email string) payer {
	t.Helper()
	added := tenants.MemberAdded{Member: "mem_bill", Organization: "org_a", Email: email, Name: "Bill", Role: tenants.Billing, PasswordHash: "x", At: r.clock()}
	testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/mem_bill"}, 0, nil, added))
	r.mailed, r.sender.Mailer = true, &notifications.Mailer{Server: office.Server(t, mailtest.Password), Origin: "https://weir.example", Links: links}
	return payer{r.pool, r.work}
}

// mails are the states of the payer's mails.
func (p payer) mails(t *testing.T) (states []notifications.State) {
	t.Helper()
	err := pg.ReadAs(t.Context(), p.pool, "org_a", func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT state FROM deliveries WHERE member = 'mem_bill' ORDER BY created_at`)
		if err != nil {
			return err
		}
		states, err = pgx.CollectRows(rows, pgx.RowTo[notifications.State])
		return err
	})
	testenv.Must(t, err)
	return states
}

func (p payer) untilMailed(t *testing.T, want notifications.State, attempted bool) {
	t.Helper()
	testenv.Eventually(t, func() error {
		var attempts int
		err := pg.ReadAs(t.Context(), p.pool, "org_a", func(tx pgx.Tx) error {
			return tx.QueryRow(t.Context(), `SELECT count(*) FROM deliveries WHERE member = 'mem_bill' AND failure <> ''`).Scan(&attempts)
		})
		if states := p.mails(t); err != nil || len(states) != 1 || states[0] != want || attempted && attempts == 0 {
			return errors.Join(err, errNot("the mails are %q", states))
		}
		return nil
	})
}

// Those who pay get mail when nothing is left, once, and admins get none.
func TestMail(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	bill := r.billed(t, office, "bill@example.com")
	r.run(t)
	fact := r.record(t, "evt_1", contract.TypeQuotaExhausted, "org_a", contract.QuotaExhausted{Organization: "org_a", Quota: 3 << 29, Used: 3 << 29})
	r.consume(t, fact, fact)
	bill.untilMailed(t, notifications.Taken, false)
	taken := office.Taken()
	if len(taken) != 1 {
		t.Fatalf("%d mails: %q", len(taken), taken)
	}
	for _, part := range []string{"<bill@example.com>", "Subject: a has used up its quota", "1.5 GiB of 1.5 GiB", "https://weir.example/console/usage"} {
		if !strings.Contains(taken[0], part) {
			t.Errorf("it lacks %q:\n%s", part, taken[0])
		}
	}
}

// Alerts are mailed to whom they name; never to those who may not read
// logs. Receivers of webhooks don't see whom.
func TestMailOfAnAlert(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	added := tenants.MemberAdded{Member: "mem_dev", Organization: "org_a", Email: "dev@example.com", Name: "Dev", Role: tenants.Developer, PasswordHash: "x", At: r.clock()}
	testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/mem_dev"}, 0, nil, added))
	w, _ := r.create(t, "org_a", to.URL)
	r.run(t)
	r.consume(t, r.record(t, "srch_1/1", contract.TypeSearchAlertFired, "org_a", contract.SearchAlert{
		Organization: "org_a", Search: "srch_1", Name: "Checkout fails", Query: "checkout", Condition: "more_than", Threshold: 10, Entries: 12,
		Examples: []string{"see: https://evil.example/x"},
		Addressed: contract.Addressed{
			MailTo: &contract.MailTo{Roles: []string{"developer"}, Members: []string{"mem_bill"}}, Path: "/console/logs?q=checkout",
		},
	}))
	var mails []string
	testenv.Eventually(t, func() error {
		if mails = office.Taken(); len(mails) == 0 {
			return errNot("nothing was mailed")
		}
		return nil
	})
	if len(mails) != 1 || !strings.Contains(mails[0], "<dev@example.com>") || !strings.Contains(mails[0], "Subject: Checkout fails fires: 12 entries") ||
		strings.Contains(mails[0], `href="https://evil`) || !strings.Contains(mails[0], "/console/logs?q=") {
		t.Errorf("mailed %q", mails)
	}
	body := string(to.await(t, 1)[0].body)
	if !strings.Contains(body, `"url":"https://weir.example/console/logs?q=checkout"`) || strings.Contains(body, "mail_to") || strings.Contains(body, `"path"`) ||
		!strings.Contains(body, `"type":"search_alert.firing"`) {
		t.Errorf("the webhook %s was sent %s", w.ID, body)
	}
}

// An alert on errors is mailed to the members whom it names.
func TestMailOfAnErrorAlert(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	added := tenants.MemberAdded{Member: "mem_dev", Organization: "org_a", Email: "dev@example.com", Name: "Dev", Role: tenants.Developer, PasswordHash: "x", At: r.clock()}
	testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/mem_dev"}, 0, nil, added))
	r.run(t)
	r.consume(t, r.record(t, "alr_1/1", contract.TypeErrorAlertFired, "org_a", contract.ErrorAlert{
		Organization: "org_a", Alert: "alr_1", Name: "Shop", More: 3, Groups: []contract.AlertedGroup{
			{Group: "grp_1", Title: "PaymentFailed: no card", Count: 2, Environment: "prod", Trigger: "new", Cause: "It is new: it has happened 2 times.", Path: "/console/errors/grp_1"},
			{Group: "grp_2", Count: 70, Trigger: "regressed", Cause: "It happened after it was resolved.", Path: "/console/errors/grp_2"},
		},
		Addressed: contract.Addressed{MailTo: &contract.MailTo{Members: []string{"mem_dev", "mem_bill"}}, Path: "/console/errors?project=prj_1"},
	}))
	var mails []string
	testenv.Eventually(t, func() error {
		if mails = office.Taken(); len(mails) == 0 {
			return errNot("nothing was mailed")
		}
		return nil
	})
	if len(mails) != 1 || !strings.Contains(mails[0], "<dev@example.com>") || !strings.Contains(mails[0], "Subject: Shop: 2 errors and 3 more") {
		t.Fatalf("mailed %q", mails)
	}
	for _, part := range []string{"PaymentFailed: no card. It is new: it has happened 2 times. In all 2, now in", "An error without a title. It happened after it was resolved.",
		"And 3 more.", "https://weir.example/console/errors/grp_1", "https://weir.example/console/errors/alerts/alr_1"} {
		if !strings.Contains(strings.NewReplacer("=\r\n", "", "\r\n", " ").Replace(mails[0]), part) {
			t.Errorf("it lacks %q:\n%s", part, mails[0])
		}
	}
}

// Who is mentioned in a note gets mail, a bounded number in an hour, also
// where all of them come again.
func TestMailOfAMention(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	added := tenants.MemberAdded{Member: "mem_dev", Organization: "org_a", Email: "dev@example.com", Name: "Dev", Role: tenants.Developer, PasswordHash: "x", At: r.clock()}
	testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/mem_dev"}, 0, nil, added))
	var facts []bus.Record
	for i := range 25 {
		facts = append(facts, r.record(t, fmt.Sprintf("grp_1/%d", i), contract.TypeErrorGroupMentioned, "org_a", contract.ErrorGroupMentioned{
			ErrorGroup: contract.ErrorGroup{Organization: "org_a", Group: "grp_1", Title: "PaymentFailed: no card"}, Note: "@Dev, is this <yours>?", Actor: "mem_2", ActorName: "Ada", Members: []string{"mem_dev"},
			Addressed: contract.Addressed{MailTo: &contract.MailTo{Members: []string{"mem_dev", "mem_bill"}}, Path: "/console/errors/grp_1"},
		}))
	}
	for range 2 {
		r.consume(t, facts...)
	}
	r.run(t)
	var mails []string
	testenv.Eventually(t, func() error {
		if mails = office.Taken(); len(mails) < 20 {
			return fmt.Errorf("%d mails", len(mails))
		}
		return nil
	})
	if len(mails) != 20 || strings.Contains(strings.Join(mails, ""), "bill@example.com") {
		t.Fatalf("%d mails: %q", len(mails), mails)
	}
	link := links.To(mail.Mailing{Organization: "org_a", Member: "mem_dev", Kind: tenants.MentionMail})
	if whole := strings.NewReplacer("=\r\n", "", "=3D", "=", "\r\n ", " ").Replace(mails[0]); !strings.Contains(whole, "List-Unsubscribe: <"+link+">") {
		t.Errorf("it can't be ended:\n%s", mails[0])
	}
	for _, part := range []string{"Subject: Ada mentions you: PaymentFailed: no card", "@Dev, is this <yours>?", "@Dev, is this &lt;yours&gt;?", "https://weir.example/console/errors/grp_1"} {
		if !strings.Contains(strings.NewReplacer("=\r\n", "", "\r\n", " ").Replace(mails[0]), part) {
			t.Errorf("it lacks %q:\n%s", part, mails[0])
		}
	}
}

// Who has unsubscribed from mail about mentions gets none, others do.
func TestUnwantedMention(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	for _, id := range []string{"mem_dev", "mem_eve"} {
		added := tenants.MemberAdded{Member: id, Organization: "org_a", Email: id + "@example.com", Name: id, Role: tenants.Developer, PasswordHash: "x", At: r.clock()}
		testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/" + id}, 0, nil, added))
	}
	chosen := tenants.MemberMailsChosen{Member: "mem_dev", Without: []tenants.MailKind{tenants.MentionMail}, At: r.clock()}
	testenv.Must(t, r.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/mem_dev"}, 1, nil, chosen))
	members := []string{"mem_dev", "mem_eve"}
	r.consume(t, r.record(t, "grp_1/1", contract.TypeErrorGroupMentioned, "org_a", contract.ErrorGroupMentioned{
		ErrorGroup: contract.ErrorGroup{Organization: "org_a", Group: "grp_1"}, Members: members,
		Addressed: contract.Addressed{MailTo: &contract.MailTo{Members: members}, Path: "/console/errors/grp_1"},
	}))
	var queued []string
	err := pg.ReadAs(t.Context(), r.pool, "org_a", func(tx pgx.Tx) (err error) {
		rows, err := tx.Query(t.Context(), `SELECT member FROM deliveries WHERE member <> ''`)
		if err != nil {
			return err
		}
		queued, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil || len(queued) != 1 || queued[0] != "mem_eve" {
		t.Errorf("mail goes to %q, %v", queued, err)
	}
}

// Mail about a budget names its project.
func TestMailOfABudget(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	r.run(t)
	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	near := r.record(t, "evt_1", contract.TypeBudgetThresholdReached, "org_a",
		contract.BudgetThresholdReached{Organization: "org_a", APIKey: "key_1", Percent: 80, Budget: 1 << 30, Used: 7 << 27, PeriodEnd: end})
	out := r.record(t, "evt_2", contract.TypeBudgetExhausted, "org_a",
		contract.BudgetExhausted{Organization: "org_a", Project: "prj_a", Budget: 1 << 30, Used: 1 << 30, PeriodEnd: end, Test: true})
	r.consume(t, near, out)
	var taken string
	testenv.Eventually(t, func() error {
		mails := office.Taken()
		if taken = strings.Join(mails, "\n"); len(mails) < 2 {
			return fmt.Errorf("%d mails", len(mails))
		}
		return nil
	})
	for _, part := range []string{"80% of a budget of a is used", "The API key key_1", "Subject: [Test] A budget of a is used up", "This is a test: nothing of it happened", "The project prj_a", "2026-12-01"} {
		if !strings.Contains(taken, part) {
			t.Errorf("the mails lack %q:\n%s", part, taken)
		}
	}
}

// What the server refuses forever is given
// up, what it may accept later is retried.
func TestMailThatIsNotTaken(t *testing.T) {
	for email, want := range map[string]notifications.State{
		"nobody@example.com": notifications.Failed, "busy@example.com": notifications.Pending, "verbose@example.com": notifications.Failed,
	} {
		to, office := newReceiver(t, 200), mailtest.Open(t)
		r := newRoom(t, to.Certificate())
		bill := r.billed(t, office, email)
		r.run(t)
		r.consume(t, r.exhausted(t, "evt_1", "org_a"))
		bill.untilMailed(t, want, true)
	}
}

// A webhook that was switched off is reported by mail.
func TestMailOfAWebhookThatIsOff(t *testing.T) {
	to, office := newReceiver(t, http.StatusGone), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	bill := r.billed(t, office, "bill@example.com")
	r.run(t)
	hook, _ := r.create(t, "org_a", to.URL)
	if _, err := r.deliveries.Test(t.Context(), by("org_a"), hook.Ref()); err != nil {
		t.Fatal(err)
	}
	bill.untilMailed(t, notifications.Taken, false)
	if taken := office.Taken(); len(taken) != 1 || !strings.Contains(taken[0], "Subject: A webhook of a was switched off") || !strings.Contains(taken[0], "410 Gone") || strings.Contains(taken[0], "List-Unsubscribe") {
		t.Errorf("the mails are %q", taken)
	}
}

// unsubscribeFrom unsubscribes the payer from some kinds of mail.
func (p payer) unsubscribeFrom(t *testing.T, without ...tenants.MailKind) {
	t.Helper()
	chosen := tenants.MemberMailsChosen{Member: "mem_bill", Without: without, At: p.work.Clock()}
	testenv.Must(t, p.work.Events.Append(t.Context(), eventstore.Stream{Organization: "org_a", Name: "member/mem_bill"}, 1, nil, chosen))
}

// ofMail are some of each type sent by mail, by kind.
func (f facts) ofMail(t *testing.T) map[tenants.MailKind][]bus.Record {
	t.Helper()
	return map[tenants.MailKind][]bus.Record{
		tenants.ThresholdMail: {
			f.record(t, "evt_1", contract.TypeThresholdReached, "org_a", contract.ThresholdReached{Organization: "org_a"}),
			f.record(t, "evt_2", contract.TypeBudgetThresholdReached, "org_a", contract.BudgetThresholdReached{Organization: "org_a"}),
		},
		tenants.ExhaustedMail: {
			f.exhausted(t, "evt_3", "org_a"),
			f.record(t, "evt_4", contract.TypeQuotaRestored, "org_a", contract.QuotaRestored{Organization: "org_a"}),
			f.record(t, "evt_5", contract.TypeBudgetExhausted, "org_a", contract.BudgetExhausted{Organization: "org_a"}),
		},
		tenants.StatementMail: {f.record(t, "evt_6", contract.TypeStatementReady, "org_a", contract.StatementReady{Organization: "org_a"})},
	}
}

// Each mail about the account has the link that ends its
// kind for its reader, in the headers and in the text.
func TestMailsCanBeEnded(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	r.run(t)
	for kind, facts := range r.ofMail(t) {
		office.Forget()
		r.consume(t, facts...)
		testenv.Eventually(t, func() error {
			if taken := office.Taken(); len(taken) != len(facts) {
				return errNot("%d mails", len(taken))
			}
			return nil
		})
		link := links.To(mail.Mailing{Organization: "org_a", Member: "mem_bill", Kind: kind})
		for _, taken := range office.Taken() {
			whole := strings.NewReplacer("=\r\n", "", "=3D", "=", "\r\n ", " ").Replace(taken) // as mail wraps
			for _, part := range []string{"List-Unsubscribe: <" + link + ">", "List-Unsubscribe-Post: List-Unsubscribe=One-Click", "No more mail like this: " + link} {
				if !strings.Contains(whole, part) {
					t.Errorf("a mail of %q lacks %q:\n%s", kind, part, whole)
				}
			}
		}
	}
}

// An unsubscribed kind of mail is not sent, all others are.
func TestUnwantedMail(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	bill := r.billed(t, office, "bill@example.com")
	bill.unsubscribeFrom(t, tenants.ThresholdMail, tenants.ExhaustedMail)
	for _, facts := range r.ofMail(t) {
		r.consume(t, facts...)
	}
	if states := bill.mails(t); len(states) != 1 {
		t.Errorf("the mails are %q, want the statement's alone", states)
	}
}

// A waiting mail is not sent after its reader unsubscribes.
func TestMailThatIsUnwantedMeanwhile(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	bill := r.billed(t, office, "bill@example.com")
	r.consume(t, r.exhausted(t, "evt_1", "org_a"))
	bill.unsubscribeFrom(t, tenants.ExhaustedMail)
	r.run(t)
	bill.untilMailed(t, notifications.Failed, true)
	if taken := office.Taken(); len(taken) > 0 {
		t.Errorf("it was sent: %q", taken)
	}
}

// Old facts, and those without a text, are not sent by mail.
func TestNoMail(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	bill := r.billed(t, office, "bill@example.com")
	old := r.exhausted(t, "evt_1", "org_a")
	r.pass(24 * time.Hour)
	r.consume(t, old, r.record(t, "evt_2", contract.TypeErrorGroupCreated, "org_a", contract.ErrorGroupCreated{ErrorGroup: contract.ErrorGroup{Organization: "org_a", Project: "prj_a"}}))
	if states := bill.mails(t); len(states) != 0 {
		t.Errorf("the mails are %q", states)
	}
}

// Each fact sent by mail has a text that its event fills, and one subject.
func TestMailTexts(t *testing.T) {
	to, office := newReceiver(t, 200), mailtest.Open(t)
	r := newRoom(t, to.Certificate())
	r.billed(t, office, "bill@example.com")
	r.run(t)
	start := time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)
	r.consume(t,
		r.record(t, "evt_1", contract.TypeQuotaRestored, "org_a", contract.QuotaRestored{Organization: "org_a", Quota: 2048, Used: 1024, PeriodEnd: start}),
		r.record(t, "evt_2", contract.TypeStatementReady, "org_a", contract.StatementReady{Organization: "org_a", Statement: 7, Used: 1024, PeriodStart: start}))
	testenv.Eventually(t, func() error {
		if taken := office.Taken(); len(taken) != 2 {
			return errNot("%d mails", len(taken))
		}
		return nil
	})
	all := strings.NewReplacer("=\r\n", "", "=\n", "").Replace(strings.Join(office.Taken(), "\n")) // as quoted-printable wraps
	for _, part := range []string{"Subject: a can send logs again", "2.0 KiB now, of which 1.0 KiB", "Subject: Statement 7 of a is ready", "has used 1.0 KiB",
		"https://weir.example/console/usage/statements/7"} {
		if !strings.Contains(all, part) {
			t.Errorf("they lack %q:\n%s", part, all)
		}
	}
	if strings.Contains(all, "no value") {
		t.Errorf("a text wants what its event does not have:\n%s", all)
	}
}

// A fact that names webhooks goes to these as well, whatever they ask for; never
// to those of others, and nobody reads which they were.
func TestFactsForOneWebhook(t *testing.T) {
	to, others := newReceiver(t, 200), newReceiver(t, 200)
	r := newRoom(t, to.Certificate())
	of := func(organization, url string) string {
		created, _, err := r.service.Create(t.Context(), by(organization), notifications.NewWebhook{Organization: organization, URL: url, Events: []string{"quota.exhausted"}})
		if err != nil {
			t.Fatal(err)
		}
		return created.ID
	}
	named, foreign := of("org_a", to.URL), of("org_b", others.URL)
	of("org_a", others.URL) // not named
	r.run(t)
	r.consume(t, r.record(t, "grp_1/3", contract.TypeErrorGroupRegressed, "org_a", contract.ErrorGroupChanged{
		ErrorGroup: contract.ErrorGroup{Organization: "org_a", Group: "grp_1"}, Status: "unresolved", Links: []string{"https://tracker.example/1"},
		Addressed: contract.Addressed{Webhooks: []string{named, foreign, "whk_gone"}, Path: "/console/errors/grp_1"},
	}))
	body := string(to.await(t, 1)[0].body)
	if !strings.Contains(body, `"url":"https://weir.example/console/errors/grp_1"`) || strings.Contains(body, "webhooks") || !strings.Contains(body, "tracker.example") {
		t.Errorf("sent %s", body)
	}
	// An alert that chooses webhooks goes to no other that asks for its type.
	asks, _, err := r.service.Create(t.Context(), by("org_a"), notifications.NewWebhook{Organization: "org_a", URL: others.URL, Events: []string{"error_alert.fired"}})
	testenv.Must(t, err)
	fired := contract.ErrorAlert{Organization: "org_a", Alert: "alr_1", Name: "Shop", Groups: []contract.AlertedGroup{},
		Addressed: contract.Addressed{MailTo: &contract.MailTo{}, Webhooks: []string{named}, OnlyWebhooks: true}}
	r.consume(t, r.record(t, "alr_1/1", contract.TypeErrorAlertFired, "org_a", fired))
	if body := string(to.await(t, 2)[1].body); !strings.Contains(body, "alr_1") || strings.Contains(body, "webhooks") {
		t.Errorf("sent %s", body)
	}
	if sent := r.sent(t, notifications.Listed{Webhook: asks}); len(sent) != 0 {
		t.Errorf("one that was not chosen was sent %+v", sent)
	}
	if n := len(others.received()); n != 0 {
		t.Errorf("others were sent %d messages", n)
	}
}

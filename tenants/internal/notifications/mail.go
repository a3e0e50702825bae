package notifications

import (
	"bytes"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	htmltemplate "html/template"
	"slices"
	"strconv"
	"strings"
	"text/template"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/mail"
	"github.com/weirlog/weir/tenants/internal/webhook"
)

// mailTexts have a text for each type of delivery
// by mail; the first line is the subject.
//
//go:embed mails/*.txt
var mailTexts embed.FS

var texts = template.Must(template.New("").Funcs(template.FuncMap{"bytes": inBytes}).ParseFS(mailTexts, "mails/*.txt"))

var page = htmltemplate.Must(htmltemplate.New("").Parse(`<!doctype html><meta charset="utf-8"><title>{{.Subject}}</title>
{{range .Paragraphs}}<p>{{.Text}}{{with .Link}}<a href="{{.}}">{{.}}</a>{{end}}</p>
{{end}}`))

// mailTextOf is the text of a type of delivery; nil: it does not go by mail.
func mailTextOf(deliveryType string) *template.Template { return texts.Lookup(deliveryType + ".txt") }

// mailKindOf is the kind of mail of a type
// of delivery; "": nobody can unsubscribe.
func mailKindOf(deliveryType string) tenants.MailKind {
	switch deliveryType {
	case "quota.threshold_reached", "budget.threshold_reached":
		return tenants.ThresholdMail
	case "quota.exhausted", "quota.restored", "budget.exhausted":
		return tenants.ExhaustedMail
	case "statement.ready":
		return tenants.StatementMail
	case "error_group.mentioned":
		return tenants.MentionMail
	}
	return ""
}

// mailedWithin is how long ago a fact may have been published to go by
// mail: an installation that begins to send mail sends no old facts.
const mailedWithin = 24 * time.Hour

// addMails adds a delivery for each member of some roles, and for some others.
// Of alerts none goes to billing members, who may not read logs.
var addMails = `
INSERT INTO deliveries (organization, id, webhook, member, project, type, body, created_at, state, begun_at, next_at)
SELECT m.organization, 'msg_' || left(encode(sha256(convert_to($2 || E'\n' || m.id, 'UTF8')), 'hex'), 32), '', m.id, $3, $4, $5, $6, 'pending', $6, $6
  FROM members m WHERE m.organization = $1 AND m.removed_at IS NULL AND $7 <> ALL (m.without_mails)
   AND (m.role = ANY ($8::text[]) OR m.id = ANY ($9::text[]) AND m.role <> 'billing')
   AND ` + fmt.Sprintf(visible, "m", "$3::text") + `
   AND ($10 = 0 OR $10 > (SELECT count(*) FROM deliveries d WHERE d.organization = $1 AND d.webhook = '' AND d.member = m.id AND d.type = $4
                             AND d.created_at > $6::timestamptz - interval '1 hour'))
 ORDER BY m.created_at, m.id LIMIT 100
ON CONFLICT (organization, id) DO NOTHING`

// mailsAnHour is how many mails of a type a member gets in an hour; 0: any number.
func mailsAnHour(deliveryType string) int {
	if deliveryType == "error_group.mentioned" {
		return 20
	}
	return 0
}

// A Mailer writes and sends mail.
type Mailer struct {
	Server *mail.Server
	Origin string // of links, such as https://weir.example
	Links  *mail.Links
}

// errNoReceiver means that the receiver of a mail is gone.
var errNoReceiver = errors.New("its receiver is no owner or billing member any more")

// errUnwanted means that the receiver of
// a mail has unsubscribed from its kind.
var errUnwanted = errors.New("its receiver has unsubscribed from such mail")

// mailReason is why a mail was not accepted, in
// fixed words: the rest of the error is only logged.
func mailReason(err error) string {
	switch {
	case errors.Is(err, errNoReceiver):
		return "The member is no owner or billing member any more."
	case errors.Is(err, errUnwanted):
		return "The member wants no such mail any more."
	case errors.Is(err, errNoMail):
		return "There is no mail server any more."
	case errors.Is(err, mail.ErrRefused):
		return "The mail server refuses the message."
	}
	return "The mail server takes nothing now."
}

// mailCause is a mail server's error without
// the receiver: a log outlives members.
func mailCause(err error, reader addressee) string {
	text := err.Error()
	for _, of := range []string{reader.email, reader.name} {
		if of != "" {
			text = strings.ReplaceAll(text, of, "…")
		}
	}
	return text
}

// An addressee is the member who receives a delivery; empty: a webhook does.
type addressee struct {
	email, name, organization string
	without                   []tenants.MailKind
}

// send sends a delivery as mail.
func (m *Mailer) send(ctx context.Context, d due, now time.Time) error {
	if d.reader.email == "" {
		return fmt.Errorf("%w: %w", mail.ErrRefused, errNoReceiver)
	}
	if slices.Contains(d.reader.without, mailKindOf(d.Type)) {
		return fmt.Errorf("%w: %w", mail.ErrRefused, errUnwanted)
	}
	written, err := m.write(d)
	if err != nil {
		return fmt.Errorf("%w: %w", mail.ErrRefused, err)
	}
	written.ID, written.To, written.Name, written.At = d.ID, d.reader.email, d.reader.name, now
	return m.Server.Send(ctx, written)
}

func (m *Mailer) write(d due) (written mail.Message, err error) {
	if written.Subject, written.Text, err = textOf(d, m.Origin); err != nil {
		return written, err
	}
	m.offerToUnsubscribe(&written, d)
	written.HTML, err = asHTML(written, m.Origin)
	return written, err
}

// textOf is a delivery in words.
func textOf(d due, origin string) (subject, text string, err error) {
	of := mailTextOf(d.Type)
	if of == nil {
		return "", "", fmt.Errorf("there is no text for %q", d.Type)
	}
	var payload struct{ Data map[string]any }
	decoder := json.NewDecoder(strings.NewReader(d.Body))
	decoder.UseNumber()
	if err := decoder.Decode(&payload); err != nil {
		return "", "", err
	}
	var all bytes.Buffer
	if err := of.Execute(&all, map[string]any{"Organization": d.reader.organization, "Origin": origin, "Data": payload.Data}); err != nil {
		return "", "", err
	}
	subject, text, _ = strings.Cut(all.String(), "\n\n")
	if payload.Data["test"] == true {
		subject, text = "[Test] "+subject, testNotice+text
	}
	return subject, text, nil
}

// offerToUnsubscribe adds a link that ends mail
// of this kind, if the receiver may choose.
func (m *Mailer) offerToUnsubscribe(written *mail.Message, d due) {
	kind := mailKindOf(d.Type)
	if kind == "" {
		return
	}
	written.Unsubscribe = m.Links.To(mail.Mailing{Organization: d.Organization, Member: d.Member, Kind: kind})
	written.Text = strings.TrimSpace(written.Text) + "\n\nNo more mail like this: " + written.Unsubscribe + "\n"
}

// testNotice begins mail about an organization in test mode.
const testNotice = "This is a test: nothing of it happened, and nobody owes anything by it.\n\n"

// A paragraph may end in one of our links.
type paragraph struct{ Text, Link string }

func asHTML(written mail.Message, origin string) (string, error) {
	var paragraphs []paragraph
	for text := range strings.SplitSeq(strings.TrimSpace(written.Text), "\n\n") {
		p := paragraph{Text: text}
		if at := strings.LastIndex(text, ": "+origin+"/"); at >= 0 {
			p = paragraph{text[:at+2], text[at+2:]}
		}
		paragraphs = append(paragraphs, p)
	}
	var html strings.Builder
	err := page.Execute(&html, map[string]any{"Subject": written.Subject, "Paragraphs": paragraphs})
	return html.String(), err
}

// inBytes formats bytes in the largest unit of at least 1.
func inBytes(number any) string {
	size, err := strconv.ParseFloat(fmt.Sprint(number), 64)
	if err != nil {
		return fmt.Sprint(number)
	}
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	unit := 0
	for ; size >= 1024 && unit < len(units)-1; unit++ {
		size /= 1024
	}
	return strconv.FormatFloat(size, 'f', min(unit, 1), 64) + " " + units[unit]
}

// mailOff queues mails about a webhook that was switched off.
func mailOff(ctx context.Context, tx pgx.Tx, after outcome) error {
	data, err := json.Marshal(map[string]string{"organization": after.Organization, "webhook": after.Webhook, "url": after.to.URL, "reason": after.switchOff})
	if err != nil {
		return err
	}
	body, err := json.Marshal(webhook.Payload{Type: typeOff, Timestamp: after.at, Data: data})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, addMails, after.Organization, "off "+after.ID+" "+after.at.String(), "", typeOff, string(body), after.at, mailKindOf(typeOff),
		accountable, nil, mailsAnHour(typeOff))
	return err
}

// accountable are the roles of those who get mail about the account.
var accountable = []tenants.Role{tenants.Owner, tenants.Billing}

// typeOff is the type of these mails.
const typeOff = "webhook.switched_off"

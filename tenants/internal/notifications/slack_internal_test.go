package notifications

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/weirlog/weir/tenants"
)

// Slack is sent a text of which nobody can make a mention; others are
// sent what is signed for all.
func TestSlack(t *testing.T) {
	const body = `{"type":"search_alert.firing","data":{"name":"A <!channel>","entries":12,"condition":"more_than","threshold":1,"test":true,"url":"https://weir.example/console/logs"}}`
	for url, format := range map[string]tenants.WebhookFormat{
		"https://hooks.slack.com/services/T0/B0/x": tenants.SlackFormat, "https://mattermost.example/hooks/x": tenants.SlackFormat,
		"https://hooks.example/x": tenants.StandardFormat, "https://hooks.slack.com/services/T0/B0/old": "",
	} {
		slack := format != tenants.StandardFormat
		sent, err := bodyFor(due{Delivery: Delivery{Type: "search_alert.firing", Body: body}, to: tenants.Webhook{URL: url, Format: format}}, "https://weir.example")
		var message struct{ Text string }
		if err != nil || json.Unmarshal(sent, &message) != nil || (message.Text != "") != slack {
			t.Errorf("%s is sent %s, %v", url, sent, err)
		}
		if slack && (!strings.HasPrefix(message.Text, "[Test] A &lt;!channel&gt; fires: 12 entries\nThis is a test") || !strings.Contains(message.Text, "https://weir.example/console/logs")) {
			t.Errorf("%s is sent %q", url, message.Text)
		}
	}
	sent, err := bodyFor(due{
		Delivery: Delivery{Type: "error_alert.fired", Body: `{"data":{"name":"Shop","alert":"alr_1","groups":[],"test":true,"url":"https://weir.example/console/errors"}}`},
		to:       tenants.Webhook{Format: tenants.SlackFormat}, reader: addressee{organization: "Acme"},
	}, "https://weir.example")
	if err != nil || !strings.Contains(string(sent), `{"text":"[Test] Shop\nThis is a test`) || !strings.Contains(string(sent), "/console/errors/alerts/alr_1") {
		t.Errorf("a test of an alert on errors: %s, %v", sent, err)
	}
}

// A fact without a mail says in Slack what happened, to which error and why, and leads there.
func TestSlackOfOtherFacts(t *testing.T) {
	for _, c := range []struct{ fact, data, text string }{
		{"error_group.regressed", `{"group":"grp_1","title":"KeyError: no <cart>","cause":"It happened in 2.1.","url":"https://weir.example/console/errors/grp_1"}`,
			"[Acme] A resolved error happens again: KeyError: no &lt;cart&gt;\nIt happened in 2.1.\nhttps://weir.example/console/errors/grp_1"},
		{"error_group.created", `{"group":"grp_1","title":"","type":"KeyError"}`, "[Acme] A new kind of error is seen: KeyError\nhttps://weir.example/console/errors/grp_1"},
		{"quota.adjusted", `{"cause":{"amount":1}}`, "[Acme] A charge is corrected\nhttps://weir.example/console"},
		{"webhook.test", `{}`, "[Acme] webhook.test\nhttps://weir.example/console"},
	} {
		sent, err := bodyFor(due{
			Delivery: Delivery{Type: c.fact, Body: `{"data":` + c.data + `}`}, to: tenants.Webhook{Format: tenants.SlackFormat}, reader: addressee{organization: "Acme"},
		}, "https://weir.example")
		var message struct{ Text string }
		if err != nil || json.Unmarshal(sent, &message) != nil || message.Text != c.text {
			t.Errorf("%s: %q, %v", c.fact, message.Text, err)
		}
	}
}

// Neither mentions nor hidden links of others that take Slack's messages are
// made of what errors say.
func TestSlackOfOthers(t *testing.T) {
	text := slackText("@everyone @Channel: [Sign in](https://evil.example) <https://evil.example|Sign in>", "")
	for _, mark := range []string{"@e", "@C", "](", "<", ">"} {
		if strings.Contains(text, mark) {
			t.Errorf("%q is in %q", mark, text)
		}
	}
}

// A message that is longer than any endpoint takes is cut between words, and leads on.
func TestSlackTextsAreCut(t *testing.T) {
	const link = "https://weir.example/console/logs?a=1&b=2"
	for name, said := range map[string]string{
		"of words": strings.Repeat("<é> ", 2000), "with a long word": "It says " + strings.Repeat("é", 3000), "of one word": strings.Repeat("<", 3000),
	} {
		text := slackText(said, link)
		body, end, _ := strings.Cut(text, "…")
		if utf8.RuneCountInString(text) > maxSlackText || end != "\nhttps://weir.example/console/logs?a=1&amp;b=2" || strings.TrimSuffix(body, "&gt;") == body && strings.Contains(body, "&") {
			t.Errorf("%s: %q … %q", name, body[max(0, len(body)-20):], end)
		}
	}
	if text := slackText(strings.Repeat("word ", 1000), "https://"+strings.Repeat("a", 3000)); utf8.RuneCountInString(text) > maxSlackText || !strings.HasSuffix(text, "word…") {
		t.Errorf("with a long link: %q", text)
	}
	short := strings.Repeat("é", maxSlackText)
	if text := slackText(short, link); text != short {
		t.Errorf("one that fits: %q", text)
	}
}

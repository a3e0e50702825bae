package notifications

import (
	"cmp"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/weirlog/weir/shared/contract"
	"github.com/weirlog/weir/tenants"
)

// bodyFor is what is sent to the webhook of a delivery.
func bodyFor(d due, origin string) ([]byte, error) {
	if d.to.Takes() != tenants.SlackFormat {
		return []byte(d.Body), nil
	}
	var payload struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(d.Body), &payload); err != nil {
		return nil, err
	}
	of := func(member string) string { text, _ := payload.Data[member].(string); return text }
	said := saidOf(d, of, origin)
	if mailTextOf(d.Type) != nil {
		subject, text, err := textOf(d, origin)
		if err != nil {
			return nil, err
		}
		said = subject + "\n" + strings.TrimSpace(text)
	}
	return json.Marshal(map[string]string{"text": slackText(said, cmp.Or(of("url"), origin+"/console"))})
}

// saidOf is a fact with some members that goes by no mail, in words: what
// happened, of an error also which one it is and why, and where to look.
func saidOf(d due, of func(member string) string, origin string) string {
	said := d.Type
	for _, fact := range contract.Notifications() {
		if fact.Name == d.Type {
			said = strings.ToUpper(fact.Means[:1]) + fact.Means[1:]
		}
	}
	lines := []string{"[" + d.reader.organization + "] " + said, of("cause"), cmp.Or(of("url"), origin+"/console")}
	if group := of("group"); group != "" {
		lines[0] += ": " + cmp.Or(of("title"), of("type"), "an error without a title")
		lines[2] = cmp.Or(of("url"), origin+"/console/errors/"+url.PathEscape(group))
	}
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n")
}

// maxSlackText is the most characters of a message: Discord refuses more.
const maxSlackText = 2000

// slackText escapes a text. What is too long ends at a space, and in a link.
func slackText(said, link string) string {
	text, end := []rune(escapeSlack.Replace(said)), []rune("…\n"+escapeSlack.Replace(link))
	if len(text) <= maxSlackText {
		return string(text)
	}
	if len(end) > maxSlackText/2 {
		end = end[:1]
	}
	kept := string(text[:maxSlackText-len(end)])
	return kept[:max(0, strings.LastIndexAny(kept, " \n"))] + string(end)
}

// escapeSlack keeps a text from mentioning people and from hiding links: in
// Slack, and by @all and [text](link) in others that take its messages.
var escapeSlack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "@\u200b", "](", "]\u200b(")

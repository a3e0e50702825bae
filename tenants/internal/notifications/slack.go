package notifications

import (
	"encoding/json"
	"net/url"
	"strings"
)

// isSlack reports whether an endpoint takes messages as Slack does, and
// refuses ours: Slack's own, and Discord's for Slack.
func isSlack(address string) bool {
	parsed, err := url.Parse(address)
	if err != nil {
		return false
	}
	return parsed.Hostname() == "hooks.slack.com" || parsed.Hostname() == "discord.com" && strings.HasSuffix(parsed.Path, "/slack")
}

// bodyFor is what is sent to the webhook of a delivery.
func bodyFor(d due, origin string) ([]byte, error) {
	if !isSlack(d.to.URL) {
		return []byte(d.Body), nil
	}
	said := d.Type + " of " + d.reader.organization + ": " + origin + "/console" // of facts without a text
	if mailTextOf(d.Type) != nil {
		subject, text, err := textOf(d, origin)
		if err != nil {
			return nil, err
		}
		said = subject + "\n" + strings.TrimSpace(text)
	}
	return json.Marshal(map[string]string{"text": escapeSlack.Replace(said)})
}

// escapeSlack keeps a text from mentioning people or hiding links.
var escapeSlack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

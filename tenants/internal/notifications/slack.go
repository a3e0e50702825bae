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
	if d.to.Format != tenants.SlackFormat {
		return []byte(d.Body), nil
	}
	if mailTextOf(d.Type) == nil {
		said, err := saidOf(d, origin)
		if err != nil {
			return nil, err
		}
		return json.Marshal(map[string]string{"text": escapeSlack.Replace(said)})
	}
	subject, text, err := textOf(d, origin)
	if err != nil {
		return nil, err
	}
	return json.Marshal(map[string]string{"text": escapeSlack.Replace(subject + "\n" + strings.TrimSpace(text))})
}

// saidOf is a fact that goes by no mail, in words: what happened, of an error
// also which one it is and why, and where to look.
func saidOf(d due, origin string) (string, error) {
	var payload struct{ Data map[string]any }
	if err := json.Unmarshal([]byte(d.Body), &payload); err != nil {
		return "", err
	}
	of := func(member string) string { text, _ := payload.Data[member].(string); return text }
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
	return strings.Join(slices.DeleteFunc(lines, func(line string) bool { return line == "" }), "\n"), nil
}

// escapeSlack keeps a text from mentioning people or hiding links.
var escapeSlack = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

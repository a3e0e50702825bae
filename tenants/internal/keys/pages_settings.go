package keys

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// settingsForm is the part of a form that new and changed keys share, filled in.
type settingsForm struct{ name, access, rate, handling, origins string }

func settingsOf(key tenants.APIKey) settingsForm {
	form := settingsForm{name: key.Name, access: string(key.Access), origins: strings.Join(key.Origins, " ")}
	if key.Lenient {
		form.handling = lenient
	}
	if key.RatePerMinute > 0 {
		form.rate = strconv.Itoa(key.RatePerMinute)
	}
	return form
}

func readSettings(r *http.Request) settingsForm {
	return settingsForm{
		name: r.PostForm.Get("name"), access: r.PostForm.Get("access"), rate: r.PostForm.Get("rate_per_minute"),
		handling: r.PostForm.Get("handling"), origins: r.PostForm.Get("origins"),
	}
}

// wanted parses the form.
func (f settingsForm) wanted() (tenants.KeySettings, *tenants.Fault) {
	rate, fault := readRate(f.rate)
	access, sending := tenants.Access(f.access), f.sending()
	return tenants.KeySettings{Name: &f.name, RatePerMinute: &rate, Access: &access, Lenient: &sending.Lenient, Origins: &sending.Origins}, fault
}

func (f settingsForm) sending() tenants.Sending {
	origins := strings.FieldsFunc(f.origins, func(c rune) bool { return c == ',' || unicode.IsSpace(c) })
	return tenants.Sending{Lenient: f.handling == lenient, Origins: origins}
}

// addTo parses the form into a command for a new key.
func (f settingsForm) addTo(wanted *tenants.IssueAPIKey) *tenants.Fault {
	settings, fault := f.wanted()
	wanted.Name, wanted.RatePerMinute, wanted.Access, wanted.Sending = *settings.Name, *settings.RatePerMinute, *settings.Access, f.sending()
	return fault
}

// readRate parses a limit of requests per minute; empty: none.
func readRate(text string) (int, *tenants.Fault) {
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, nil
	}
	rate, err := strconv.Atoi(text)
	if err != nil || rate < 1 {
		return 0, &tenants.Fault{Field: "rate_per_minute", Detail: fmt.Sprintf("The limit is %q.", text),
			Fix: "Use a whole number from 1, or leave it empty for no limit of its own."}
	}
	return rate, nil
}

func (f settingsForm) fields(fault error) []ui.Field {
	return []ui.Field{
		{Name: "name", Label: "Name", Value: f.name, Fault: pages.FaultOf(fault, "name"), MaxLength: 200, Required: true,
			Autocomplete: "off", Hint: "Where the key will be, such as checkout, pods in Frankfurt. One key per service is easiest to replace."},
		{Name: "access", Label: "The key may", Fault: pages.FaultOf(fault, "access"), Choices: ui.NewChoices(f.access, accesses...),
			Hint: "What only sends logs needs to read nothing: then a key that gets into wrong hands shows nobody anything. You can change this later."},
		{Name: "rate_per_minute", Label: "Requests per minute", Type: "number", Value: f.rate, Optional: true,
			Fault: pages.FaultOf(fault, "rate_per_minute"), Hint: "A limit of its own, below your organization's. Empty: none."},
		{Name: "handling", Label: "Entries that are not quite valid", Choices: ui.NewChoices(f.handling, handlings...),
			Hint: "Normalized are levels such as WARNING, times with an offset or as numbers, stack traces as one text, arrays and NDJSON."},
		{Name: "origins", Label: "Web pages that use the key", Value: f.origins, Fault: pages.FaultOf(fault, "origins"), Optional: true,
			Autocomplete: "off", Hint: "Only for logs from browsers: the origins, such as https://shop.example. Everybody who opens such a page can read " +
				"the key, so it must read nothing and have a limit of its own. Its entries are marked with metadata.untrusted_client."},
	}
}

const lenient = "lenient"

// handlings are the choices of how a key's entries are taken.
var handlings = [][2]string{{"", "Refuse them, and say what is wrong"}, {lenient, "Normalize them, and say what was changed"}}

// accesses are the choices of a key's access, with their texts.
var accesses = [][2]string{
	{string(tenants.FullAccess), "Send logs, and read all of the organization's logs and errors"},
	{string(tenants.ProjectAccess), "Send logs, and read those of its own project alone"},
	{string(tenants.WriteAccess), "Send logs, and read nothing"},
}

// accessText is what a key may do, as text.
func accessText(access tenants.Access) string {
	for _, choice := range accesses {
		if choice[0] == string(access) {
			return choice[1]
		}
	}
	return string(access)
}

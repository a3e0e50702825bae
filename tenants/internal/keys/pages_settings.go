package keys

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/weirlog/weir/shared/ui"
	"github.com/weirlog/weir/tenants"
	"github.com/weirlog/weir/tenants/internal/pages"
)

// settingsForm is the part of a form that new and changed keys share, filled in.
type settingsForm struct{ name, access, rate string }

func settingsOf(key tenants.APIKey) settingsForm {
	form := settingsForm{name: key.Name, access: string(key.Access)}
	if key.RatePerMinute > 0 {
		form.rate = strconv.Itoa(key.RatePerMinute)
	}
	return form
}

func readSettings(r *http.Request) settingsForm {
	return settingsForm{name: r.PostForm.Get("name"), access: r.PostForm.Get("access"), rate: r.PostForm.Get("rate_per_minute")}
}

// wanted parses the form.
func (f settingsForm) wanted() (tenants.KeySettings, *tenants.Fault) {
	rate, fault := readRate(f.rate)
	access := tenants.Access(f.access)
	return tenants.KeySettings{Name: &f.name, RatePerMinute: &rate, Access: &access}, fault
}

// addTo parses the form into a command for a new key.
func (f settingsForm) addTo(wanted *tenants.IssueAPIKey) *tenants.Fault {
	settings, fault := f.wanted()
	wanted.Name, wanted.RatePerMinute, wanted.Access = *settings.Name, *settings.RatePerMinute, *settings.Access
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
	}
}

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

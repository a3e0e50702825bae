package signin

import "strings"

// A mark is the name of a browser or system in a User-Agent.
type mark struct{ part, name string }

// Each browser also has the names of those after it.
var browserMarks = []mark{
	{"Edg", "Edge"}, {"OPR/", "Opera"}, {"SamsungBrowser/", "Samsung Internet"}, {"Firefox/", "Firefox"}, {"FxiOS/", "Firefox"},
	{"CriOS/", "Chrome"}, {"Chrome/", "Chrome"}, {"Safari/", "Safari"}, {"curl/", "curl"},
}

var systemMarks = []mark{
	{"Android", "Android"}, {"iPhone", "iPhone"}, {"iPad", "iPad"}, {"CrOS", "ChromeOS"}, {"Windows", "Windows"},
	{"Mac OS X", "macOS"}, {"Linux", "Linux"},
}

// clientName is a User-Agent as text. It helps
// to recognize a browser, and proves nothing.
func clientName(agent string) string {
	browser, system := find(browserMarks, agent), find(systemMarks, agent)
	switch {
	case browser != "" && system != "":
		return browser + " on " + system
	case browser+system != "":
		return browser + system
	}
	return "Unknown browser"
}

func find(marks []mark, agent string) string {
	for _, mark := range marks {
		if strings.Contains(agent, mark.part) {
			return mark.name
		}
	}
	return ""
}

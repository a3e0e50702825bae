package errorcodes

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

const introduction = `# Error codes

Every ` + "`code`" + ` that the API answers with, made from the source by ` + "`make docs`" + `: with which status, what is said and what to do. A code never
changes its meaning and is never renamed; what is said may. Where no status stands, the code is of one entry or member, in ` + "`errors[]`" + `.
"…" is a value of the request.

| Code | Status | From | What is said, and what to do |
|---|---|---|---|
`

// Write writes the answers as a page of Markdown, a row for each code.
func Write(w io.Writer, answers []Answer) error {
	var page strings.Builder
	page.WriteString(introduction)
	for len(answers) > 0 {
		n := slices.IndexFunc(answers, func(a Answer) bool { return a.Code != answers[0].Code })
		if n < 0 {
			n = len(answers)
		}
		writeRow(&page, answers[:n])
		answers = answers[n:]
	}
	_, err := io.WriteString(w, page.String())
	return err
}

func writeRow(page *strings.Builder, same []Answer) {
	var statuses, from, texts []string
	for _, a := range same {
		if a.Status != 0 {
			statuses = append(statuses, strconv.Itoa(a.Status))
		}
		from = append(from, cmp.Or(map[string]string{"shared": "every module"}[a.Module], a.Module))
		if text := strings.TrimSpace(a.Detail + " " + a.Fix); text != "" {
			texts = append(texts, cell(text))
		}
	}
	if len(texts) == 0 {
		texts = []string{composed[same[0].Code]}
	}
	fmt.Fprintf(page, "| `%s` | %s | %s | %s |\n", same[0].Code, unique(statuses, ", "), unique(from, ", "), unique(texts, "<br>"))
}

// composed are the codes whose whole detail is put together for each answer.
var composed = map[string]string{ // bounded by its literal
	"invalid_entries": "No entry is valid, or one is not and the request wants all or none. Nothing was stored. Repair what errors[] lists, and send it again.",
	"limit_reached":   "There are as many of these as the organization may have: limit says how many. Remove one, or have the operator raise the setting.",
	"quota_exceeded":  "The quota, or a budget of the project or key, does not cover the request; or the organization is suspended. See quota and resets_at.",
	"unavailable":     "Something that the service needs can't be reached now. Send the whole request again after the time in Retry-After.",
}

func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}

// unique joins texts, each once, in their order.
func unique(texts []string, separator string) string {
	var once []string
	for _, text := range texts {
		if !slices.Contains(once, text) {
			once = append(once, text)
		}
	}
	return strings.Join(once, separator)
}

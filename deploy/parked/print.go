package parked

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// longestReason is how many characters of a reason the table shows.
const longestReason = 100

// Table writes records as a table, with their ages at now.
func Table(w io.Writer, records []Record, now time.Time) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	fmt.Fprintln(t, "RECORD\tORGANIZATION\tAGE\tATTEMPTS\tBYTES\tSTATE\tREASON")
	for _, r := range records {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d\t%s\t%s\n", printable(r.ID()), printable(r.Organization), age(now.Sub(r.ParkedAt)), r.Attempts, len(r.Record.Value),
			r.state(now), cut(printable(strings.SplitN(r.Reason, "\n", 2)[0])))
	}
	return t.Flush()
}

// state returns whether a replay of the record is requested.
func (r Record) state(now time.Time) string {
	if r.AskedAt.IsZero() {
		return "parked"
	}
	return "replay asked " + age(now.Sub(r.AskedAt)) + " ago"
}

func cut(s string) string {
	if utf8.RuneCountInString(s) <= longestReason {
		return s
	}
	return string([]rune(s)[:longestReason-1]) + "…"
}

// age formats a duration in the largest unit that fits.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(max(0, int(d.Seconds()))) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + " h"
	default:
		return strconv.Itoa(int(d.Hours()/24)) + " d"
	}
}

// Details writes one record, with at most so many bytes of its value.
func Details(w io.Writer, r Record, now time.Time, most int) error {
	t := tabwriter.NewWriter(w, 0, 4, 2, ' ', 0)
	for _, line := range [][2]string{
		{"record", r.ID()}, {"module", r.Schema}, {"organization", r.Organization}, {"written", r.Record.Time.Format(time.RFC3339Nano)},
		{"parked", r.ParkedAt.UTC().Format(time.RFC3339) + ", " + age(now.Sub(r.ParkedAt)) + " ago"},
		{"attempts", strconv.Itoa(r.Attempts) + ", the last " + age(now.Sub(r.FailedAt)) + " ago"},
		{"state", r.state(now)}, {"key", string(r.Record.Key)},
	} {
		fmt.Fprintf(t, "%s\t%s\n", line[0], printable(line[1]))
	}
	for _, h := range r.Record.Headers {
		fmt.Fprintf(t, "header %s\t%s\n", printable(h.Key), printable(string(h.Value)))
	}
	fmt.Fprintf(t, "value\t%d bytes\n", len(r.Record.Value))
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nreason:\n%s\n", printableLines(r.Reason))
	value := r.Record.Value
	if len(value) > most {
		value = value[:most]
	}
	fmt.Fprintf(w, "\nvalue:\n%s\n", printableLines(string(value)))
	if len(value) < len(r.Record.Value) {
		fmt.Fprintf(w, "… %d bytes more; --raw writes all of them\n", len(r.Record.Value)-len(value))
	}
	return nil
}

// printableLines is printable for text of several lines.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = printable(lines[i])
	}
	return strings.Join(lines, "\n")
}

// printable escapes what a terminal would obey or hide: control characters,
// invisible ones and invalid UTF-8, and the backslash that begins escapes.
func printable(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case r == '\\':
			b.WriteString(`\\`)
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

package audit

import (
	"encoding/csv"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirlog/weir/tenants"
)

// csvPage is how many lines are read at once.
const csvPage = 1000

// perPage is how long the client may take for one page.
const perPage = time.Minute

// csvHeader names the columns. It is part of the format.
var csvHeader = []string{
	"sequence", "at", "organization", "action", "actor_kind", "actor", "actor_name", "role", "address", "client", "request",
	"target_kind", "target", "target_name", "before", "after", "hash",
}

// serveCSV responds with CSV (RFC 4180): first, and all lines
// that next returns after a number, until there are none. An
// error aborts the connection: a cut file must not look complete.
func serveCSV(w http.ResponseWriter, organization string, first []tenants.AuditEvent, next func(before int64) ([]tenants.AuditEvent, error)) {
	w.Header().Set("Content-Type", "text/csv; charset=utf-8; header=present")
	w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(organization)))
	w.Header().Set("Cache-Control", "no-store")
	control, out := http.NewResponseController(w), csv.NewWriter(w)
	out.UseCRLF = true
	err := out.Write(csvHeader)
	for lines := first; err == nil && len(lines) > 0; {
		_ = control.SetWriteDeadline(time.Now().Add(perPage)) //nolint:forbidigo // the connection's deadline
		for _, line := range lines {
			_ = out.Write(row(line)) // Error returns it
		}
		out.Flush()
		if err = out.Error(); err == nil {
			lines, err = next(lines[len(lines)-1].Sequence)
		}
	}
	if out.Flush(); err != nil || out.Error() != nil {
		panic(http.ErrAbortHandler)
	}
}

func fileName(organization string) string {
	if organization == tenants.Installation {
		organization = "installation"
	}
	return "audit-" + organization + ".csv"
}

func row(e tenants.AuditEvent) []string {
	fields := []string{
		strconv.FormatInt(e.Sequence, 10), e.At.UTC().Format(time.RFC3339Nano), e.Organization, e.Action, string(e.Origin.Kind),
		e.Origin.Actor, e.ActorName, string(e.Origin.Role), e.Origin.Address, e.Origin.Client, e.Origin.Request, e.Target.Kind,
		e.Target.ID, e.Target.Name, e.Before, e.After, e.Hash,
	}
	for i, field := range fields {
		fields[i] = withoutFormula(field)
	}
	return fields
}

// withoutFormula is a field that no spreadsheet takes for
// a formula: a possible one gets an apostrophe in front.
func withoutFormula(field string) string {
	if field != "" && strings.ContainsRune("=+-@\t\r", rune(field[0])) {
		return "'" + field
	}
	return field
}

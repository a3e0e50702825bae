package doctor

import "fmt"

// files checks whether a process may open as many files as
// its connections need.
func (e *examination) files() {
	const subject = "this shell"
	files, err := e.Machine.Files()
	if err != nil {
		e.report.add(Fail, "files", subject, err.Error(), "Look at the limit with ulimit -n.")
		return
	}
	wanted, err := e.Connections.Limits().Within(1 << 30)
	if err != nil {
		e.report.add(Fail, "files", subject, err.Error(), "Change WEIR_MAX_CONNECTIONS.")
		return
	}
	fits, err := e.Connections.Limits().Within(files)
	switch {
	case err != nil:
		e.report.add(Fail, "files", subject, err.Error(), "The service won't start: do as it says (systemd: LimitNOFILE=).")
	case fits.Total < wanted.Total:
		e.report.add(Warn, "files", subject, fmt.Sprintf("%d files may be open: a service holds %d connections instead of %d", files, fits.Total, wanted.Total),
			"Raise the limit of the services (ulimit -n, systemd: LimitNOFILE=).")
	default:
		e.report.add(OK, "files", subject, fmt.Sprintf("%d files may be open, for %d connections", files, fits.Total), "")
	}
}

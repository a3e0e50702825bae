package doctor

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/weirlog/weir/deploy/allinone"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/deploy/settings"
	"github.com/weirlog/weir/shared/bus"
	"github.com/weirlog/weir/shared/bus/cluster"
)

// Run checks everything and returns its findings.
func Run(ctx context.Context, config Config) Report {
	e := &examination{Config: config.orDefault()}
	e.report.At = e.Machine.Clock().UTC()
	e.settings()
	e.secrets()
	e.files()
	e.directories()
	e.certificate()
	e.brokerCertificate()
	e.bus(ctx)
	e.databases(ctx)
	return e.report
}

// An examination is one run of all checks.
type examination struct {
	Config

	report    Report
	services  allinone.Modules // settings of the modules
	brokers   []string
	catalogue []settings.Setting // of all services
	signIn    bus.Access
	dialer    *bus.Dialer
	seen      cluster.Cluster // the brokers' answer; no topics without one
}

func (e *examination) now() time.Time { return e.Machine.Clock() }

// look runs one check in bounded time. Its failure is a finding.
func (e *examination) look(ctx context.Context, check, subject, fix string, do func(context.Context) error) bool {
	ctx, cancel := context.WithTimeout(ctx, e.CheckTimeout)
	defer cancel()
	err := do(ctx)
	if err != nil {
		e.report.add(Fail, check, subject, err.Error(), fix)
	}
	return err == nil
}

// includes reports whether a module is to be checked.
func (e *examination) includes(module string) bool {
	return len(e.Modules) == 0 || slices.Contains(e.Modules, module)
}

// directories checks the named ones, and the data directory if there is one.
func (e *examination) directories() {
	dirs := []string{}
	if _, err := os.Stat(e.DataDir); err == nil {
		dirs = append(append(dirs, e.DataDir), e.mounted()...)
	}
	for _, dir := range []string{e.StateDir, e.BackupDir} {
		if dir != "" {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		e.space(dir)
	}
	e.backups()
}

// certificates returns the served files: those of the data directory if
// none are named.
func (e *examination) certificates() localca.Files {
	if e.TLSCertFile != "" || e.TLSKeyFile != "" {
		return localca.Files{CA: e.CAFile, Server: e.TLSCertFile, ServerKey: e.TLSKeyFile}
	}
	files := localca.In(filepath.Join(e.DataDir, "tls"))
	if _, err := os.Stat(files.Server); err != nil {
		return localca.Files{}
	}
	return files
}

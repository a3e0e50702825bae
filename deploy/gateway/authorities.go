package gateway

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"os"
	"sync"
)

// Authorities sign the certificates of trusted modules. Their file is
// read for each connection: replacing it needs no restart.
type Authorities struct {
	file   string // "": the system's
	logger *slog.Logger

	mu      sync.Mutex
	text    []byte         // of the file, when it was last valid
	pool    *x509.CertPool // from text; nil: the system's
	failing bool           // the last read failed
}

// LoadAuthorities reads a PEM file of certificates; "" means the system's.
func LoadAuthorities(file string, logger *slog.Logger) (*Authorities, error) {
	a := &Authorities{file: file, logger: logger}
	if err := a.refresh(); err != nil {
		return nil, err
	}
	return a, nil
}

// config returns the present TLS settings for modules.
func (a *Authorities) config() *tls.Config {
	a.mu.Lock()
	defer a.mu.Unlock()
	err := a.refresh()
	if err != nil && !a.failing { // once, until it is valid again
		a.logger.Error("the authorities have changed and can't be read: those before are used", slog.String("error", err.Error()))
	}
	a.failing = err != nil
	return &tls.Config{RootCAs: a.pool, MinVersion: tls.VersionTLS12}
}

func (a *Authorities) refresh() error {
	if a.file == "" {
		return nil
	}
	text, err := os.ReadFile(a.file)
	if err != nil {
		return fmt.Errorf("cannot read the authorities (WEIR_CA_FILE): %w", err)
	}
	if a.pool != nil && bytes.Equal(text, a.text) {
		return nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return fmt.Errorf("the file %q (WEIR_CA_FILE) holds no certificate", a.file)
	}
	a.text, a.pool = text, pool
	return nil
}

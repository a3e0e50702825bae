package httpapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// LoadTLS reads a certificate and its key, both PEM files. It reads
// changed files again with the next connection: a renewed certificate
// needs no restart.
func LoadTLS(certFile, keyFile string, logger *slog.Logger) (*tls.Config, error) {
	c := &certificate{files: [2]string{certFile, keyFile}, logger: logger}
	if err := c.load(); err != nil {
		return nil, err
	}
	return &tls.Config{GetCertificate: c.current, MinVersion: tls.VersionTLS12}, nil
}

// A certificate is the last whole one in its files.
type certificate struct {
	files  [2]string // certificate and key
	logger *slog.Logger

	mu     sync.Mutex
	seen   [2]os.FileInfo // of the files last read, whole or not; nil: one was missing
	loaded *tls.Certificate
}

// stat returns nil for a missing file: reading it gives the error.
func stat(file string) os.FileInfo {
	info, err := os.Stat(file)
	if err != nil {
		return nil
	}
	return info
}

// unchanged reports whether a file was neither written nor replaced.
func unchanged(before, now os.FileInfo) bool {
	if before == nil || now == nil {
		return before == nil && now == nil
	}
	return os.SameFile(before, now) && before.ModTime().Equal(now.ModTime()) && before.Size() == now.Size()
}

// current implements tls.Config's GetCertificate.
func (c *certificate) current(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.refresh(); err != nil {
		c.logger.Error("the certificate has changed and can't be read: the one before is used", slog.String("error", err.Error()))
	}
	return c.loaded, nil
}

func (c *certificate) load() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.refresh()
}

// refresh reads changed files. If a certificate and key don't match,
// one is about to be replaced.
func (c *certificate) refresh() error {
	now := [2]os.FileInfo{stat(c.files[0]), stat(c.files[1])}
	if c.loaded != nil && unchanged(c.seen[0], now[0]) && unchanged(c.seen[1], now[1]) {
		return nil
	}
	c.seen = now
	pair, err := tls.LoadX509KeyPair(c.files[0], c.files[1])
	if err != nil {
		return fmt.Errorf("cannot load the certificate %q with key %q: %w", c.files[0], c.files[1], err)
	}
	if c.loaded != nil {
		c.logger.Info("another certificate is used", slog.Time("expires", pair.Leaf.NotAfter))
	}
	c.loaded = &pair
	return nil
}

// measureCertificate shows the expiry of the certificate in use: a
// renewed one's at the next scrape.
func measureCertificate(registerer prometheus.Registerer, config *tls.Config) {
	if config == nil || config.GetCertificate == nil {
		return
	}
	promauto.With(registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "weir_tls_certificate_expiry_timestamp_seconds", Help: "Unix time at which the certificate of the listener expires.",
	}, func() float64 {
		used, err := config.GetCertificate(nil)
		if err != nil || used.Leaf == nil {
			return 0
		}
		return float64(used.Leaf.NotAfter.Unix())
	})
}

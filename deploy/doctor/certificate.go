package doctor

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/weirlog/weir/deploy/endpoint"
	"github.com/weirlog/weir/deploy/localca"
	"github.com/weirlog/weir/shared/process"
)

// renewWithin is how long before its expiry a certificate should be replaced.
const renewWithin = 14 * 24 * time.Hour

// A certificateChecker checks what is shown to clients and to brokers.
type certificateChecker struct{ checker }

// certificate checks the listeners' certificate.
func (c *certificateChecker) certificate() {
	files := c.certificates()
	if files.Server == "" && files.ServerKey == "" {
		return
	}
	c.worldReadable("certificate's key", files.ServerKey)
	chain, err := readChain(files.Server)
	if err != nil {
		c.report.add(Fail, "certificate", files.Server, err.Error(),
			"Set WEIR_TLS_CERT_FILE to a PEM file with the certificate and what lies between it and its authority.")
		return
	}
	if _, err := tls.LoadX509KeyPair(files.Server, files.ServerKey); err != nil {
		c.report.add(Fail, "certificate", files.ServerKey, err.Error(), "Set WEIR_TLS_KEY_FILE to the PEM file with the key that this certificate was made for.")
	}
	found := len(c.report.Findings)
	c.validity(files.Server, chain[0])
	c.names(files.Server, chain[0])
	c.trust(files.Server, files.CA, chain)
	if len(c.report.Findings) == found {
		c.report.add(OK, "certificate", files.Server,
			fmt.Sprintf("for %s, until %s", strings.Join(namesOf(chain[0]), ", "), chain[0].NotAfter.Format(time.DateOnly)), "")
	}
}

// brokerCertificate checks the client certificate for the brokers.
func (c *certificateChecker) brokerCertificate() {
	file := c.BrokerAccess.CertFile
	if file == "" {
		return
	}
	chain, err := readChain(file)
	if err != nil {
		c.report.add(Fail, "certificate", file, err.Error(), "Set WEIR_BROKERS_CERT_FILE to a PEM file with the certificate that the brokers are shown.")
		return
	}
	found := len(c.report.Findings)
	if c.validity(file, chain[0]); len(c.report.Findings) == found {
		c.report.add(OK, "certificate", file, fmt.Sprintf("of %s at the brokers, until %s", chain[0].Subject, chain[0].NotAfter.Format(time.DateOnly)), "")
	}
}

// certificates returns the served files: those of the data directory if
// none are named.
func (c *certificateChecker) certificates() localca.Files {
	if c.TLSCertFile != "" || c.TLSKeyFile != "" {
		return localca.Files{CA: c.CAFile, Server: c.TLSCertFile, ServerKey: c.TLSKeyFile}
	}
	files := localca.In(filepath.Join(c.DataDir, "tls"))
	if _, err := os.Stat(files.Server); err != nil {
		return localca.Files{}
	}
	return files
}

func readChain(file string) (chain []*x509.Certificate, err error) {
	rest, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("cannot read a certificate: %w", err)
		}
		chain = append(chain, certificate)
	}
	if len(chain) == 0 {
		return nil, errors.New("there is no certificate in it")
	}
	return chain, nil
}

func (c *certificateChecker) validity(file string, leaf *x509.Certificate) {
	left := leaf.NotAfter.Sub(c.now())
	const fix = "Replace the files with a certificate that is valid: services take it with the next connection, without a restart."
	switch {
	case left <= 0:
		c.report.add(Fail, "certificate", file, "it expired at "+leaf.NotAfter.Format(time.RFC3339), fix)
	case c.now().Before(leaf.NotBefore):
		c.report.add(Fail, "certificate", file, "it is not valid before "+leaf.NotBefore.Format(time.RFC3339), fix)
	case left < renewWithin:
		c.report.add(Warn, "certificate", file, "it expires at "+leaf.NotAfter.Format(time.RFC3339), fix)
	}
}

// names checks whether the certificate is for its hosts.
func (c *certificateChecker) names(file string, leaf *x509.Certificate) {
	hosts := slices.Clone(c.Hosts)
	if origin, err := url.Parse(c.ConsoleOrigin); err == nil && origin.Hostname() != "" {
		hosts = append(hosts, origin.Hostname())
	}
	for _, host := range hosts {
		if leaf.VerifyHostname(host) != nil {
			c.report.add(Fail, "certificate", file, fmt.Sprintf("it is for %s, not for %s", strings.Join(namesOf(leaf), ", "), host),
				"Have a certificate issued that names this host: clients refuse this one.")
		}
	}
}

func namesOf(leaf *x509.Certificate) []string {
	names := slices.Clone(leaf.DNSNames)
	for _, address := range leaf.IPAddresses {
		names = append(names, address.String())
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// trust checks whether an authority has signed the certificate, at a
// time when it is valid.
func (c *certificateChecker) trust(file, authorities string, chain []*x509.Certificate) {
	roots, err := rootsIn(authorities)
	if err != nil {
		c.report.add(Fail, "certificate", authorities, err.Error(), "Set WEIR_CA_FILE to a PEM file with the authorities' certificates.")
		return
	}
	between := x509.NewCertPool()
	for _, certificate := range chain[1:] {
		between.AddCert(certificate)
	}
	at := c.now()
	if leaf := chain[0]; at.After(leaf.NotAfter) || at.Before(leaf.NotBefore) {
		at = leaf.NotAfter.Add(-time.Second) // its expiry is another finding
	}
	if _, err := chain[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between, CurrentTime: at}); err != nil {
		c.report.add(Fail, "certificate", file, err.Error(),
			"Put what lies between the certificate and its authority into the same file, behind it; of an authority of your own, set WEIR_CA_FILE.")
	}
}

// rootsIn returns the authorities in a file; nil, the system's, for no file.
func rootsIn(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, errors.New("there is no certificate in it")
	}
	return roots, nil
}

// secrets checks the files with secrets: each can be read, is not
// empty, and can't be read by everybody.
func (c *hostChecker) secrets() {
	files := c.secretFiles()
	for _, variable := range slices.Sorted(maps.Keys(files)) {
		file := files[variable]
		if base := strings.TrimSuffix(variable, process.FileSuffix); os.Getenv(base) != "" {
			c.report.add(Fail, "secret", variable, base+" is set, too", "Set one of the two: services refuse both.")
			continue
		}
		if _, err := process.SecretIn(file, variable); err != nil {
			c.report.add(Fail, "secret", variable, err.Error(), "Write the secret into the file, and let the service's user read it.")
			continue
		}
		c.worldReadable(variable, file)
	}
}

// secretFiles returns the variables that name a file with a secret.
func (c *hostChecker) secretFiles() map[string]string {
	known := append(secretVariables(c.catalogue), endpoint.SharedDatabase)
	for _, m := range modules {
		known = append(known, endpoint.DatabaseOf(m.name))
	}
	files := map[string]string{}
	for _, name := range known {
		if file := os.Getenv(name + process.FileSuffix); file != "" {
			files[name+process.FileSuffix] = file
		}
	}
	for name, file := range map[string]string{
		"WEIR_BROKERS_PASSWORD_FILE": c.BrokerAccess.PasswordFile, "WEIR_BROKERS_TOKEN_FILE": c.BrokerAccess.TokenFile,
		"WEIR_BROKERS_KEY_FILE": c.BrokerAccess.KeyFile,
	} {
		if file != "" {
			files[name] = file
		}
	}
	return files
}

// worldReadable checks whether every user of the machine can read a
// file: its mode and those of all directories above.
func (c *checker) worldReadable(what, file string) {
	info, err := os.Stat(file)
	if err != nil {
		return // its reader reports that
	}
	seen := fmt.Sprintf("%s has the mode %04o", file, info.Mode().Perm())
	if info.Mode().Perm()&0o004 != 0 && c.Machine.Passable(filepath.Dir(file)) {
		c.report.add(Warn, "secret", what, seen+": every user of this machine can read it",
			"Take the right from others (chmod o-rwx), or close the directory (chmod 0700).")
		return
	}
	c.report.add(OK, "secret", what, seen, "")
}

// passable reports whether every user may pass through a directory and
// all above it. A container's first process has no other users beside it.
func passable(dir string) bool {
	const first = 1
	if os.Getpid() == first {
		return false
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return true
	}
	for {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&0o001 == 0 {
			return false
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return true
		}
		dir = parent
	}
}

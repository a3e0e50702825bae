package process

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// ready asks the process that serves beside it: it is the health check
// of a container without other programs.
type ready struct {
	Listen  string        `help:"Address that the process listens on." env:"WEIR_LISTEN" required:""`
	Timeout time.Duration `help:"How long to wait for the answer." default:"5s"`
}

// Run is called by kong.
func (r ready) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, r.Timeout)
	defer cancel()
	address, err := local(r.Listen)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/readyz", nil)
	if err != nil {
		return err
	}
	// The certificate is for the names that clients use, not for this
	// address. Nothing secret is sent.
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}} //nolint:gosec // see above
	defer client.CloseIdleConnections()
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no answer: %w", err)
	}
	defer response.Body.Close()
	return judge(response)
}

// local returns a listener's address on its own machine.
func local(listen string) (string, error) {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return "", fmt.Errorf("WEIR_LISTEN is %q: it can be such as :8443 or 127.0.0.1:8443", listen)
	}
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		host = ""
	}
	return net.JoinHostPort(cmp.Or(host, "localhost"), port), nil
}

// judge returns why the process can't serve.
func judge(response *http.Response) error {
	if response.StatusCode == http.StatusOK {
		return nil
	}
	var problem struct{ Detail string }
	body, _ := io.ReadAll(io.LimitReader(response.Body, 1<<16)) // an unreadable body explains nothing
	_ = json.Unmarshal(body, &problem)
	return fmt.Errorf("%s: %s", response.Status, cmp.Or(problem.Detail, "no reason given"))
}

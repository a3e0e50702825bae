package process

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/httpapi"
)

// CheckBrokers reports what is wrong with the setting WEIR_BROKERS.
func CheckBrokers(brokers []string) error {
	if len(brokers) == 0 {
		return errors.New("WEIR_BROKERS is empty: name at least one broker as host:port")
	}
	return nil
}

// CheckDatabaseURL reports what is wrong with a setting such as
// WEIR_DATABASE_URL. It never shows the value, which holds a password.
func CheckDatabaseURL(variable, text string) error {
	if text == "" {
		return fmt.Errorf("%[1]s is empty: name a database as postgres://user:password@host/database, or in %[1]s%[2]s a file that does", variable, FileSuffix)
	}
	if u, err := url.Parse(text); err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
		return fmt.Errorf("%s is not a URL such as postgres://user:password@host/database", variable)
	}
	return nil
}

// FileSuffix ends the name of a secret's variable that names a file instead.
const FileSuffix = "_FILE"

// SecretFiles lets every secret setting be given as a file:
// WEIR_DATABASE_URL_FILE names the file with WEIR_DATABASE_URL. Tools
// show environments and children inherit them, unlike files.
func SecretFiles() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		return errors.Join(kong.Resolvers(kong.ResolverFunc(fromFile)).Apply(k), kong.ValueFormatter(secretHelp).Apply(k))
	})
}

func fromFile(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if !isSecret(flag.Value) {
		return nil, nil
	}
	for _, variable := range flag.Tag.Envs {
		name := os.Getenv(variable + FileSuffix)
		if name == "" {
			continue
		}
		if os.Getenv(variable) != "" {
			return nil, fmt.Errorf("set one of %s and %s", variable, variable+FileSuffix)
		}
		return SecretIn(name, variable+FileSuffix)
	}
	return nil, nil
}

// SecretIn returns the secret in a file that a variable names.
func SecretIn(name, variable string) (string, error) {
	content, err := os.ReadFile(name)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", variable, err)
	}
	secret := strings.TrimSpace(string(content))
	if secret == "" {
		return "", fmt.Errorf("the file %q (%s) is empty", name, variable)
	}
	return secret, nil
}

func isSecret(value *kong.Value) bool {
	return value.Target.IsValid() && value.Target.Type() == reflect.TypeFor[httpapi.Secret]()
}

func secretHelp(value *kong.Value) string {
	help := kong.DefaultHelpValueFormatter(value)
	if !isSecret(value) || len(value.Tag.Envs) == 0 {
		return help
	}
	return strings.TrimSuffix(help, ").") + ", or a file that holds it in $" + value.Tag.Envs[0] + FileSuffix + ")."
}

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

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/weirlog/weir/shared/httpapi"
)

type secretive struct {
	Token httpapi.Secret `help:"The token." env:"WEIR_TEST_TOKEN" required:""`
	Name  string         `help:"A name." env:"WEIR_TEST_NAME"`
}

// A secret comes from its variable, or from the file of its other
// variable, and from no other setting's.
func TestSecretFiles(t *testing.T) {
	dir := t.TempDir()
	full, empty := filepath.Join(dir, "token"), filepath.Join(dir, "empty")
	write(t, full, " s3cret\n")
	write(t, empty, "\n")
	for name, c := range map[string]struct {
		environment map[string]string
		args        []string
		want, err   string
	}{
		"in a file":                    {map[string]string{"WEIR_TEST_TOKEN_FILE": full}, nil, "s3cret", ""},
		"in the variable":              {map[string]string{"WEIR_TEST_TOKEN": "other"}, nil, "other", ""},
		"as a flag":                    {map[string]string{"WEIR_TEST_TOKEN_FILE": full}, []string{"--token=flag"}, "flag", ""},
		"in both":                      {map[string]string{"WEIR_TEST_TOKEN_FILE": full, "WEIR_TEST_TOKEN": "other"}, nil, "", "set one of WEIR_TEST_TOKEN and WEIR_TEST_TOKEN_FILE"},
		"nowhere":                      {nil, nil, "", "--token"},
		"in a file that is empty":      {map[string]string{"WEIR_TEST_TOKEN_FILE": empty}, nil, "", "is empty"},
		"in a file that is not there":  {map[string]string{"WEIR_TEST_TOKEN_FILE": full + "x"}, nil, "", "cannot read WEIR_TEST_TOKEN_FILE"},
		"beside a file of no secret":   {map[string]string{"WEIR_TEST_TOKEN": "other", "WEIR_TEST_NAME_FILE": full}, nil, "other", ""},
		"not shown by what is refused": {map[string]string{"WEIR_TEST_TOKEN": "other"}, []string{"--unknown"}, "", "unknown flag"},
	} {
		t.Run(name, func(t *testing.T) {
			for variable, value := range c.environment {
				t.Setenv(variable, value)
			}
			var got secretive
			parser, err := kong.New(&got, SecretFiles())
			if err != nil {
				t.Fatal(err)
			}
			_, err = parser.Parse(c.args)
			if message := text(err); (c.err == "") != (err == nil) || !strings.Contains(message, c.err) || strings.Contains(message, "s3cret") || strings.Contains(message, "other") {
				t.Fatalf("error %q", message)
			}
			if err == nil && (got.Token.Reveal() != c.want || got.Name != "") {
				t.Errorf("got %q and %q", got.Token.Reveal(), got.Name)
			}
		})
	}
}

// Only a secret's help names the variable for its file.
func TestSecretHelp(t *testing.T) {
	var out bytes.Buffer
	parser, err := kong.New(&secretive{}, SecretFiles(), kong.Writers(&out, &out), kong.Exit(func(int) {}))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = parser.Parse([]string{"--help"})
	help := strings.Join(strings.Fields(out.String()), " ")
	if !strings.Contains(help, "The token ($WEIR_TEST_TOKEN, or a file that holds it in $WEIR_TEST_TOKEN_FILE).") || strings.Contains(help, "NAME_FILE") {
		t.Error(help)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

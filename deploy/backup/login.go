package backup

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/weirlog/weir/shared/httpapi"
)

// A login is how PostgreSQL's programs reach a database: the address,
// an argument that every user of the machine can read, has no secret.
type login struct {
	address string
	env     []string
	folder  string // of a file with a secret that libpq takes from no variable; "": none
}

// everyOrganization lets the programs see all rows: for policies of row
// level security it means all organizations (shared/pg).
const everyOrganization = "-c weir.organization=*"

func loginOf(database httpapi.Secret) (l login, err error) {
	parsed, err := url.Parse(database.Reveal())
	if err != nil {
		return l, errors.New("cannot read the address of the database")
	}
	query := parsed.Query()
	if err := l.takeSecrets(parsed.User, query); err != nil {
		return l, err
	}
	if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	// libpq takes options from the address if it has any, and else
	// from the environment.
	options := strings.TrimSpace(cmp.Or(query.Get("options"), os.Getenv("PGOPTIONS")) + " " + everyOrganization)
	removeOurs(query)
	query.Set("options", options)
	parsed.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq does not decode a plus
	l.address = parsed.String()
	return l, nil
}

// takeSecrets keeps what the address must not show.
func (l *login) takeSecrets(user *url.Userinfo, query url.Values) error {
	password, _ := user.Password()
	if query.Has("password") {
		password = query.Get("password")
	}
	if password != "" {
		l.env = append(l.env, "PGPASSWORD="+password)
	}
	if !query.Has("sslpassword") {
		return nil
	}
	if query.Has("service") || os.Getenv("PGSERVICE") != "" {
		return errors.New("the address of the database has sslpassword, and a service beside it: name one of them")
	}
	return l.keep("sslpassword", query.Get("sslpassword"))
}

// removeOurs removes secrets, and options that only our own driver understands.
func removeOurs(query url.Values) {
	for name := range query {
		switch name {
		case "password", "sslpassword", "default_query_exec_mode", "statement_cache_capacity", "description_cache_capacity":
			query.Del(name)
		}
		if strings.HasPrefix(name, "pool_") {
			query.Del(name)
		}
	}
}

// keep puts a secret into a service file, readable only by this user.
func (l *login) keep(name, secret string) (err error) {
	if l.folder, err = os.MkdirTemp("", "weir-login-"); err != nil {
		return err
	}
	file := filepath.Join(l.folder, "service")
	if err := os.WriteFile(file, []byte("[weir]\n"+name+"="+secret+"\n"), 0o600); err != nil {
		return errors.Join(err, l.forget())
	}
	l.env = append(l.env, "PGSERVICEFILE="+file, "PGSERVICE=weir")
	return nil
}

func (l *login) forget() error {
	if l.folder == "" {
		return nil
	}
	return os.RemoveAll(l.folder)
}

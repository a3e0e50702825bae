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

// A login is how PostgreSQL's programs reach a database: no secret is in the
// address, which is an argument that every user of the machine can read.
type login struct {
	address string
	env     []string
	folder  string // of a file with a secret that libpq takes from no variable; "": there is none
}

// everyOrganization lets the programs see all rows: policies of row level
// security take it for all of them (shared/pg).
const everyOrganization = "-c weir.organization=*"

func loginOf(database httpapi.Secret) (l login, err error) {
	parsed, err := url.Parse(database.Reveal())
	if err != nil {
		return l, errors.New("cannot read the address of the database")
	}
	password, _ := parsed.User.Password()
	if parsed.User != nil {
		parsed.User = url.User(parsed.User.Username())
	}
	query := parsed.Query()
	if query.Has("password") {
		password = query.Get("password")
	}
	if password != "" {
		l.env = append(l.env, "PGPASSWORD="+password)
	}
	if query.Has("sslpassword") {
		if query.Has("service") || os.Getenv("PGSERVICE") != "" {
			return l, errors.New("the address of the database has sslpassword, and a service beside it: name one of them")
		}
		if err := l.keep("sslpassword", query.Get("sslpassword")); err != nil {
			return l, err
		}
	}
	// libpq takes options from the address alone where it has any, and not from the environment too.
	options := strings.TrimSpace(cmp.Or(query.Get("options"), os.Getenv("PGOPTIONS")) + " " + everyOrganization)
	removeOurs(query)
	query.Set("options", options)
	parsed.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // libpq takes a plus as it stands
	l.address = parsed.String()
	return l, nil
}

// removeOurs removes secrets, and what only our own driver understands.
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

// keep puts a secret into a service file, readable by this user alone.
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

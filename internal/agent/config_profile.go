package agent

import (
	"net/url"
	"regexp"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/tasuki-io/tasuki/internal/executor"
)

// configProviders are the providers, and which fields a profile of each has. It needs them all.
var configProviders = map[string][]string{
	"aws":   {"region"},
	"azure": {"subscription", "resourceGroup"},
	"oci":   {"region", "compartment"},
}

// configResource is what places at a provider are called. They end up in addresses of its API.
var configResource = form{regexp.MustCompile(`^[A-Za-z0-9_(][A-Za-z0-9._()-]*$`), 255}

// profile reads a CloudProviderProfile.
func (o *configObject) profile() executor.Profile {
	var provider, endpoint, region, subscription, group, compartment *yaml.Node
	p := executor.Profile{Name: o.name}
	if !o.need(o.at, "spec", o.spec) || !o.fields(o.spec, "spec",
		configField{"provider", &provider}, configField{"region", &region}, configField{"subscription", &subscription},
		configField{"resourceGroup", &group}, configField{"compartment", &compartment}, configField{"endpoint", &endpoint}) {
		return p
	}
	if o.need(o.spec, "provider", provider) {
		p.Provider = oneOfWords(o, provider, "provider", "aws", "azure", "oci")
	}
	for _, f := range []struct {
		name  string
		n     *yaml.Node
		value *string
	}{
		{"region", region, &p.Region},
		{"subscription", subscription, &p.Subscription},
		{"resourceGroup", group, &p.ResourceGroup},
		{"compartment", compartment, &p.Compartment},
	} {
		wanted := slices.Contains(configProviders[p.Provider], f.name)
		switch *f.value = o.text(f.n, f.name); {
		case p.Provider == "":
		case wanted && !o.need(o.spec, f.name, f.n):
		case !wanted && !absentNode(f.n):
			o.report(f.n, "provider %s has no %s: take it out", p.Provider, f.name)
		case *f.value != "" && !configResource.fits(*f.value):
			o.report(f.n, "%s %s is no name: write letters, digits, -, ., _ and parentheses", f.name, quoteValue(*f.value))
		}
	}
	p.Endpoint = o.endpoint(endpoint)
	return p
}

func (o *configObject) endpoint(n *yaml.Node) string {
	text := o.text(n, "endpoint")
	if text == "" {
		return ""
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		o.report(n, "endpoint is not a URL: write one such as https://ec2.example.com")
	case u.User != nil:
		o.report(n, "endpoint has user information in it: take it out, as the host's own cloud identity is used")
	case u.RawQuery != "" || u.Fragment != "" || u.ForceQuery:
		o.report(n, "endpoint has a query or a fragment: write the URL without")
	}
	return text
}

// profileExists reports a reference to a profile that there is not.
func (o *configObject) profileExists(n *yaml.Node, field, ref string) {
	if _, ok := o.load.config.Profiles[ref]; !ok && !o.load.torn {
		o.report(n, "%s: there is no CloudProviderProfile %s: write it, or name one that there is", field, ref)
	}
}

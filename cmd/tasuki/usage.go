package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// operands takes the arguments that the usage line of a command names, no fewer and no more.
func operands(cmd *cobra.Command, args []string) error {
	_, line, _ := strings.Cut(cmd.Use, " ")
	line, _, _ = strings.Cut(line, "--") // flags are cobra's
	names := strings.Fields(line)
	usage := strings.TrimSpace(cmd.CommandPath() + strings.TrimPrefix(cmd.Use, cmd.Name()))
	switch {
	case len(args) < len(names):
		return fmt.Errorf("%s is missing: write '%s'", names[len(args)], usage)
	case len(args) > len(names):
		return fmt.Errorf("unexpected argument %q: write '%s'", args[len(names)], usage)
	}
	return nil
}

// subcommand takes no argument: what is none of a group's commands was meant to be one.
func subcommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return fmt.Errorf("unknown command %q for %q%s", args[0], cmd.CommandPath(), instead(cmd, args[0]))
}

// needsSubcommand runs a command that is only a group of others.
func needsSubcommand(cmd *cobra.Command, _ []string) error {
	return usageError{fmt.Errorf("%s needs a subcommand: %s", cmd.CommandPath(), anyOf(available(cmd), ""))}
}

// helpKnows has help refuse what is no command, as the command line does.
func helpKnows(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		panic(err) // cobra has it
	}
	help.Args = func(_ *cobra.Command, args []string) error {
		of, rest, err := root.Find(args)
		if err == nil && of.HasSubCommands() {
			err = subcommand(of, rest)
		}
		return err
	}
}

// wrongFlag says what is wrong with a flag, and what to write instead.
func wrongFlag(cmd *cobra.Command, err error) error {
	if cmd.HasSubCommands() { // the flag may be right, and its command misspelt
		if err := cmd.ValidateArgs(cmd.Flags().Args()); err != nil {
			return err
		}
	}
	var none *pflag.NotExistError
	var bare *pflag.ValueRequiredError
	var wrong *pflag.InvalidValueError
	switch {
	case errors.As(err, &none) && none.GetSpecifiedShortnames() == "":
		flags := &cobra.Command{}
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			flags.AddCommand(&cobra.Command{Use: f.Name, Hidden: f.Hidden, Run: func(*cobra.Command, []string) {}})
		})
		if near := near(flags, none.GetSpecifiedName()); len(near) > 0 {
			return fmt.Errorf("%w: did you mean %s?", err, anyOf(near, "--"))
		}
	case errors.As(err, &bare):
		f := bare.GetFlag()
		return fmt.Errorf("--%s needs a value: %s", f.Name, f.Usage)
	case errors.As(err, &wrong):
		f := wrong.GetFlag()
		return fmt.Errorf("--%s %q: %s", f.Name, wrong.GetValue(), valueOf(f, wrong))
	}
	return err
}

// valueOf says what to write as the value of a flag.
func valueOf(f *pflag.Flag, err *pflag.InvalidValueError) string {
	switch f.Value.Type() {
	case "int":
		return "write a whole number, such as " + f.DefValue
	case "bool":
		return "write true or false, after an equals sign"
	case "duration":
		return fmt.Sprintf("write a duration, such as %s (there is no unit for days: a day is 24h)", f.DefValue)
	}
	return errors.Unwrap(err).Error()
}

// instead names the commands of a group that a word may have been meant for, or else all of them.
func instead(cmd *cobra.Command, word string) string {
	if found := near(cmd, word); len(found) > 0 {
		return ": did you mean " + anyOf(found, "") + "?"
	}
	return ": write " + anyOf(available(cmd), "")
}

// near are the commands of a group that begin with a word, or else are spelt much like it.
func near(cmd *cobra.Command, word string) []string {
	cmd.SuggestionsMinimumDistance = min(2, len(word)/2)
	found := cmd.SuggestionsFor(word)
	if whole := slices.DeleteFunc(slices.Clone(found), func(name string) bool { return !strings.HasPrefix(name, word) }); len(whole) > 0 {
		return whole
	}
	return found
}

func available(cmd *cobra.Command) []string {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return names
}

func anyOf(words []string, prefix string) string {
	last := prefix + words[len(words)-1]
	if len(words) == 1 {
		return last
	}
	return prefix + strings.Join(words[:len(words)-1], ", "+prefix) + " or " + last
}

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.regex.PatternSyntaxException;

/** Matches each text with each pattern as jmx_exporter does; both come as hexadecimal UTF-8. */
public class JavaPatterns {
  public static void main(String[] arguments) throws Exception {
    var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
    for (String line; (line = lines.readLine()) != null; ) {
      String[] given = line.split(" ", -1);
      System.out.println(matched(text(given[0]), text(given[1])));
    }
  }

  private static String matched(String pattern, String text) {
    try {
      Matcher matcher = Pattern.compile("^.*(?:" + pattern + ").*$").matcher(text);
      if (!matcher.matches()) {
        return "no";
      }
      StringBuilder groups = new StringBuilder("yes");
      for (int group = 1; group <= matcher.groupCount(); group++) {
        String found = matcher.group(group);
        groups.append(' ').append(found == null ? "-" : "=" + hexadecimal(found));
      }
      return groups.toString();
    } catch (PatternSyntaxException error) {
      return "wrong";
    }
  }

  private static String text(String hexadecimal) {
    return new String(java.util.HexFormat.of().parseHex(hexadecimal), StandardCharsets.UTF_8);
  }

  private static String hexadecimal(String text) {
    return java.util.HexFormat.of().formatHex(text.getBytes(StandardCharsets.UTF_8));
  }
}

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Savepoint;
import java.util.Properties;

/** A session of PostgreSQL's JDBC driver: prepared statements in text and binary form, fetch sizes, savepoints, arrays. */
public class Session {
    public static void main(String[] arguments) throws SQLException {
        Properties properties = new Properties();
        properties.setProperty("user", "moraine");
        // Prepared on the server, and results in binary form, from the first execution on.
        properties.setProperty("prepareThreshold", "-1");
        try (Connection connection = DriverManager.getConnection(arguments[0], properties)) {
            reads(connection);
            writes(connection);
            describes(connection);
        }
        System.out.println("done");
    }

    private static void reads(Connection connection) throws SQLException {
        String sql = "SELECT table_id, table_name, table_uuid, path_is_relative, end_snapshot FROM ducklake_table WHERE table_id = ?";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int time = 0; time < 7; time++) {
                statement.setLong(1, 1);
                try (ResultSet rows = statement.executeQuery()) {
                    check(rows.next(), "a row");
                    check(rows.getLong(1) == 1 && rows.getString(2).equals("t"), "its columns");
                    check(rows.getObject(3) instanceof java.util.UUID && rows.getBoolean(4), "their types");
                    check(rows.getObject(5) == null && !rows.next(), "NULL, and the end");
                }
            }
        }
        try (PreparedStatement statement = connection.prepareStatement("SELECT count(*) FROM ducklake_metadata WHERE key = ANY(?)")) {
            statement.setArray(1, connection.createArrayOf("varchar", new String[] {"version", "nothing"}));
            try (ResultSet rows = statement.executeQuery()) {
                check(rows.next() && rows.getInt(1) == 1, "an array");
            }
        }
        connection.setAutoCommit(false);
        try (PreparedStatement statement = connection.prepareStatement("SELECT key FROM ducklake_metadata ORDER BY key")) {
            statement.setFetchSize(2);
            int count = 0;
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    count++;
                }
            }
            check(count >= 4, "rows in portions");
        }
        connection.commit();
    }

    private static void writes(Connection connection) throws SQLException {
        String sql = "INSERT INTO ducklake_metadata (key, value) VALUES (?, ?)";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            statement.setString(1, "target_file_size");
            statement.setString(2, "2MB");
            statement.addBatch();
            statement.setString(1, "parquet_compression");
            statement.setString(2, "gzip");
            statement.addBatch();
            check(statement.executeBatch().length == 2, "a batch");
            Savepoint savepoint = connection.setSavepoint("here");
            statement.setString(1, "never");
            statement.setString(2, "x");
            statement.executeUpdate();
            try {
                connection.createStatement().executeQuery("SELECT nothing");
                check(false, "an error");
            } catch (SQLException error) {
                check(error.getSQLState().equals("42703"), error.getSQLState());
            }
            connection.rollback(savepoint);
            connection.releaseSavepoint(savepoint);
        }
        connection.commit();
        connection.setAutoCommit(true);
        connection.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
        check(connection.getTransactionIsolation() == Connection.TRANSACTION_SERIALIZABLE, "an isolation level");
    }

    private static void describes(Connection connection) throws SQLException {
        try (ResultSet columns = connection.getMetaData().getColumns(null, "public", "ducklake_table", null)) {
            int count = 0;
            while (columns.next()) {
                count++;
            }
            check(count == 8, "the columns of a table: " + count);
        }
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }
}

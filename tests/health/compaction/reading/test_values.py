"""Values in force: which sentences a later one changed, corrected or withdrew, and which it must leave alone."""

from __future__ import annotations

from time import perf_counter

import pytest

from health.compaction.reading.force import Force, Outdated, in_force, without_force
from health.compaction.reading.signs import is_question
from health.compaction.reading.text import passages
from health.compaction.reading.values import Said, heard
from health.compaction.terms.units import Kind, Role, Unit

NOTED = "Noted."
NOTED_ZH = "记下了。"
NOTHING: tuple[str, ...] = ()


def talk(*lines: str, reply: str = NOTED) -> list[Said]:
    """What a user said, message by message; "a / b" is answered with b, all else with a short note.

    "~" stands before a message whose first sentence is outdated in the end.
    """
    said: list[Said] = []
    for line in lines:
        asked, _, answered = line.partition(" / ")
        said += [Said(Role.USER, asked.removeprefix("~")), Said(Role.ASSISTANT, answered or reply)]
    return said


def outdated(said: list[Said]) -> list[Outdated]:
    return without_force(said, heard(said))


def sentences(said: list[Said], role: Role = Role.USER) -> tuple[str, ...]:
    found = (out for out in outdated(said) if said[out.message].role is role)
    return tuple(said[out.message].text[out.start : out.end] for out in found)


def marked(said: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(passages(line[1:])[0].text for line in said if line.startswith("~"))


# Said anew, with the subject


@pytest.mark.parametrize(
    "said",
    [
        ("~The dentist is at 9:15.", "They moved the dentist to 10:40."),
        ("~The plumber comes at 8:30.", "The plumber comes at 11:00."),
        ("~Choir practice is on Tuesday.", "We shifted choir practice to Thursday."),
        ("~The thesis is due on 3 May.", "My supervisor wants the thesis by 20 April."),
        ("~The thesis is due on May 3rd.", "The thesis is due on 2027-04-20."),
        ("~The piano may cost 2,400 euros.", "For the piano I can pay 3,100 euros."),
        ("~Order 40 of the blue chairs.", "Make it 55 for the blue chairs."),
        ("~The cabin has six beds.", "Turns out the cabin has only four beds."),
        ("~The party is on Friday.", "Saturday works for all."),
        ("~The branch is main.", "The branch is now develop."),
        ("~We booked the ferry for Tuesday.", "They moved the ferry to Thursday."),
        ("~I put up a shelf in the hall.", "I moved the shelf to the attic."),
        ("~I ordered the grey rug.", "I cancelled the grey rug."),
        ("~Never mail customers after 18:00.", "Never mail customers after 17:00."),
        ("~Never deploy on Fridays.", "Now never deploy on Thursdays."),
        ("~[urgent] The budget is 500 euros.", "[2026-03-09] The budget is 700 euros."),
        ("~Never use more than 3 retries.", "Never use more than 5 retries."),
        ("~Never spend 300 on shoes.", "Never spend 200 on shoes."),
        ("~The budget is 500 euros.", "We have 700 euros."),
        ("~The read timeout is 30 seconds.", "The read timeout is 45 seconds now."),
        ("~The proxy timeout is 30 seconds.", "The timeout is 45 seconds."),
        ("~Gate 7 closes at 18:20.", "Gate 7 closes at 18:45."),
        ("~The house has 3 rooms.", "We looked again: the house has 4 rooms."),
        ("~The list has 45 people.", "We are up to 52 guests on the list."),
        ("~The timeout of the proxy is 30 seconds.", "Set the timeout of the proxy to 45 seconds."),
        ("~Send the violin to 12 Castle Street.", "The violin goes to 5 Brook Lane."),
        ("~Write to help@old.example about the licence.", "For the licence, write to desk@new.example."),
        (
            "~I asked Ruben about the insurance.",
            "~Talk to Ruben about the insurance.",
            "Fatima took over the insurance.",
        ),
        ("~The wiki runs on Postgres, as I wanted with Helga.", "We moved the wiki to MariaDB."),
        ("~The wedding is at the lighthouse.", "We found that the wedding is now in the orangery."),
        ("~Paint the shed dark green.", "The shed will rather be ochre."),
        ("~Write the weekly digest as a list.", "I'd rather have the weekly digest as prose."),
        ("~Answer the survey questions in French.", "From now on answer the survey questions in German."),
        ("~My sister's flight lands at 17:20.", "My sister's flight is delayed to 19:05."),
        ("~The rehearsal is on Monday. The hall is booked.", "The rehearsal moves to Friday."),
        ("~The invoice says 410 euros for the boiler.", "The boiler is 460 euros, they forgot the valve."),
        ("~Could you put the tasting on Sunday?", "The tasting is on Saturday."),
        ("~My landlord is Mr Petrov.", "My landlord is Mrs Lindqvist now."),
        ("~Let's use tabs in the Go files.", "Actually use spaces in the Go files."),
        ("~Use tabs.", "We saw whales.", "Use spaces instead."),
        ("~Use npm.", "We saw whales.", "Never use npm."),
        ("~Deadline: Friday.", "We saw whales.", "Deadline: Monday."),
        ("~We decided to use Redis.", "We saw whales.", "We decided to use Memcached instead of Redis."),
        ("~Use tabs for indentation.", "We saw whales.", "No, spaces instead of tabs."),
        ("~Reply in French.", "We saw whales.", "From now on reply in English."),
        ("~Reply to me in bullet points.", "One short paragraph please when you reply to me."),
        ("~The API listens on port 8080.", "Change the port of the API to 9090."),
        ("~The conference is in Vienna.", "The conference moved to Graz."),
        (
            "~The budget is 900 euros for both of us.",
            "We saw whales.",
            "The budget is 1,100 euros now, I got a raise.",
        ),
        ("~For groups the deposit is 1,250 crowns.", "A correction about groups: the deposit is 1,900 crowns now."),
        ("~The deadline is 3 May.", "We saw whales.", "Whales are big.", "The deadline is 9 May, by the way."),
        ("~I pay 480 euros for the cellar.", "The rent for the cellar is 520 euros."),
        ("~My slot at the dentist is 9:15.", "The appointment with the dentist is at 10:40."),
        ("~Send the books to 12 Castle Street.", "The books go to 5 Brook Lane."),
        ("~The cellar costs 480 euros.", "The landlord wrote, the cellar costs 520 euros from May."),
        ("~The report is due on 3 May.", "The report is due on 20 April."),
        ("~I want the fence in beige.", "On second thought, I want the fence in pale blue."),
        ("~The course is on 14 May in room B12.", "The course moved: 21 May, room C3."),
        ("~Dinner is for seven.", "Dinner is for nine, the Lows are coming too."),
        ("~Mara is our treasurer.", "Mara stepped down as treasurer, Jo does it."),
        ("~The photos are in pics/raw.", "I moved the photos to pics/done."),
        ("~The table is called user_list.", "The table should be called member_list."),
        ("~Run the linter with check -v.", "Run the linter with check -q from now on."),
        ("~The spare key is in the shed.", "The spare key is in the cellar now."),
        ("~The report is due by the 3rd.", "The report is due by the 12th."),
        ("~The debug logs stay for 3 days.", "The debug logs stay for 5 days."),
        ("~Pilates is at 18:00.", "~Pilates moved to 19:00.", "Pilates is back at 18:00."),
        ("~Ingrid gets a bunk by the door.", "Ingrid would rather have a bunk by the window."),
        ("~We have 985 euros to spend on the fair.", "935 euros is all there is for the fair."),
        ("~The address for the desk is 18 Tanner Row.", "Could the driver bring the desk to 7 Mill Lane?"),
        ("~The plane was due at 9:40, they said yesterday.", "Yesterday they moved the plane to 11:10."),
        ("~Bring half a loaf for the picnic.", "Bring a whole loaf for the picnic."),
        ("~The visa for Peru runs out at the end of May.", "The visa for Peru runs out on 9 June, I looked."),
        ("~IDLE_SECONDS should be forty.", "bump IDLE_SECONDS to ninety"),
        (
            "~The bees go to the meadow behind the mill.",
            "It rained too much: the bees go to the orchard by the canal now.",
        ),
        ("~The tour covers Rome, Siena and Pisa.", "The tour now covers Lucca, Prato and Assisi."),
        ("~Never touch server web1.", "Change of plan: never touch server web2."),
        ("~Always deploy from release-1.", "Always deploy from release-2."),
        ("~The exam is in room 4/6.", "The exam moves to room 4/8."),
        ("~The tenants' meeting is on Friday.", "The tenants meeting is on Monday."),
        ("~Never set the timeout above 30.", "Never set the timeout above 60."),
        ("~Never set the timeout to 30.", "From now on never set the timeout to 60."),
        ("~Never call from 9:00 to 17:00.", "Never call from 9:00 to 18:00."),
        ("~初二(3)班的家长会在周五。", "初二(3)班的家长会改到周一。"),
        ("~初二(3)班有42人。", "初二(3)班现在有43人。"),
        ("~李先生负责合同。", "王女士负责合同。"),
        ("~李先生周五来。", "李先生改周一来。"),
        ("~李女士订了3个房间。", "李女士改订5个房间。"),
        ("~超时设为30秒。", "超时不要30秒，改成60秒。"),
        ("~超时设为30秒。", "不要30秒，改成60秒。"),
    ],
)
def test_what_is_said_anew_of_a_subject_takes_the_place_of_what_was_said(said: tuple[str, ...]) -> None:
    assert sentences(talk(*said)) == marked(said)


# Corrected right behind, without a subject


@pytest.mark.parametrize(
    "said",
    [
        ("~The museum opens at 10:30.", "Sorry, 9:30."),
        ("~My locker has number LK40718.", "Typo: LK40781."),
        ("~The museum opens at 10:30.", "Strike that, 9:30."),
        ("~The museum opens at 10:30.", "I misread, 9:30."),
        ("~The museum opens at 10:30.", "9:30, I misread the poster."),
        ("~The vet has time on Wednesday.", "No, Thursday."),
        ("~The vet has time on Wednesday.", "Thursday!"),
        ("~I need 12 of the lanterns.", "Wait, 16 is better."),
        ("~The museum opens at 10:30.", "Hang on, 9:30."),
        ("~The museum opens at noon.", "Make that half past twelve."),
        ("~The museum opens at 10:30.", "9:30, not 10:30."),
        ("~The vet has time on Wednesday.", "How do cats purr?", "Oops, I meant Thursday."),
        ("~Paint the gate red.", "No, the blue one."),
        ("~Write the digest as a poem.", "Let's take plain prose after all."),
        ("~Serve soup at the fair.", "Pancakes instead."),
        ("~The museum opens at 10:30. Sorry, 9:30.",),
        ("~The museum opens at 10:30.", "~No, 9:30.", "The museum opens at 8:00."),
    ],
)
def test_a_value_without_a_subject_corrects_what_was_said_just_before(said: tuple[str, ...]) -> None:
    assert sentences(talk(*said)) == marked(said)


# Corrections that name what they correct, ways back, and withdrawals


@pytest.mark.parametrize(
    "said",
    [
        ("~The dentist is at 9:15.", "The dentist is at 10:40 and not at 9:15."),
        ("~The thesis is due on 3 May.", "The thesis went from 3 May to 20 April."),
        ("~Paint the shed dark green.", "The shed will be ochre instead of dark green."),
        ("~The dentist is at 9:15.", "~The dentist moved to 10:40.", "The dentist is back to 9:15."),
        ("~Choir practice is on Tuesday.", "Choir practice is cancelled this term."),
        ("~The violin goes to 5 Brook Lane.", "I'll fetch the violin myself."),
        ("~The thesis is due on 3 May.", "Forget about the thesis."),
        ("~The tour covers Rome, Siena and Pisa.", "The tour is cancelled."),
        ("~Sort invoices by their date.", "Forget what I said about sorting invoices."),
        ("~Order the tent for Lena.", "Don't order the tent."),
        ("~Buy a kayak for Lena.", "Lena doesn't want a kayak any more."),
        ("~Order the tent for Lena.", "The tent? Nah, don't order it."),
        ("~I'm allergic to walnuts.", "Turns out I'm not allergic to walnuts."),
        ("~Never call customers at home.", "You can call customers at home again."),
        ("~Put a chapter on glue in.", "Leave glue out of it."),
        ("~We have a table at Orlando for Saturday.", "Orlando cancelled on us."),
        ("~I live in Ghent.", "I used to live in Ghent, it's Bruges now."),
        ("~Write the weekly digest as a list.", "I no longer need the weekly digest."),
        ("~Choir practice is on Tuesday.", "Choir practice has folded."),
        ("~Choir practice is on Tuesday.", "Tuesday got too busy, so choir practice goes to Friday."),
        ("~Fatima looks after the insurance.", "Helga has taken over the insurance."),
        ("~Send the books to 12 Castle Street.", "Nobody is home, please bring the books to 5 Brook Lane."),
        ("~Choir practice is on Tuesday.", "I quit choir practice."),
        ("~They charge 480 euros for the cellar.", "We gave notice for the cellar."),
        ("~The lock gate is on version 3.1.", "The lock gate goes from version 3.1 to version 4.0."),
        ("~I asked Ruben about the insurance.", "So Fatima replaces Ruben on the insurance."),
        ("~Our agent at the harbour is Ms Petrov.", "Ms Petrov retired; Mr Osei is our agent at the harbour."),
        ("~Ask Helga before you sell the boat.", "You don't have to ask Helga before selling."),
    ],
)
def test_corrections_and_withdrawals_stand_and_what_they_end_does_not(said: tuple[str, ...]) -> None:
    assert sentences(talk(*said)) == marked(said)


# What replaces nothing


@pytest.mark.parametrize(
    "said",
    [
        ("The dentist is at 9:15.", "The hairdresser is at 10:40."),
        ("The outward flight leaves at 7:10.", "The homeward flight leaves at 21:30."),
        ("Use tabs.", "Use spaces for the tests."),
        ("The course starts on 3 May.", "The course ends on 9 June."),
        ("My train arrives at 9:15.", "My train leaves at 17:40."),
        ("Never use npm.", "Use pnpm."),
        ("We like Redis.", "The shop has a kiosk instead of Redis."),
        ("Ask me in a menu rather than in a dialog.", "Ask me in a menu rather than in a dialog."),
        ("The owner is Ada.", "The owner is away."),
        ("The title of chapter 1 is Dawn.", "The title of chapter 2 is Dusk."),
        ("Use tabs.", "Write two spaces after a period."),
        ("Reply in English.", "I speak French at home."),
        ("Never use npm.", "Never use yarn."),
        ("Use sqlite for the tests.", "Use postgres for production."),
        ("Petra: My name is Ana.", "Yara: My name is Yara."),
        ("The guests are Anna, Ben and Chris.", "Ben can't make it."),
        ("The tour covers Rome, Siena and Pisa.", "Skip Pisa, and put Lucca there."),
        ("Buy eggs, flour, butter and sugar.", "We no longer need the sugar."),
        ("Look at src/a_b.py.", "Look at src/c_d.py."),
        ("Fix the crash in app/main.py.", "Fix the crash in app/util.py."),
        ("Tests live in tests/unit.", "Docs live in docs/user."),
        ("Never delete rows from orders.", "You may delete rows from temp_orders."),
        ("I like the tent in the yard.", "Don't put the tent near the fire."),
        ("Call the plumber.", "Don't call the plumber before 9."),
        ("Never call customers at home.", "You can call customers by their first name now."),
        ("I want an aisle seat.", "My colleague cancelled his aisle seat."),
        ("In report.toml colours are on.", "In letter.toml colours are off."),
        ("The ferry leaves at 8:30.", "The ferry does not leave at 9:30, whatever the poster says."),
        ("The ferry leaves at 8:30.", "Would 9:30 be better for the ferry?"),
        ("The ferry costs 20 euros.", "Back in 2011 the ferry cost 12 euros."),
        ("We have a boat with two sails.", "As a child I had a boat with one sail and two oars."),
        ("Write dates as 3 May.", "Some people write dates as 5/3, others as 3.5."),
        ("The house has 3 rooms.", "The house has 2 floors."),
        ("The meeting with Ada is at 9:00.", "I skip breakfast before the meeting."),
        ("The report is due on Friday.", "Forget the charts in the report."),
        ("The invoice goes to Ada.", "Drop the invoice into the shared folder."),
        ("Write tests for the parser.", "The parser no longer prints warnings."),
        ("The hotel is booked for 3 nights.", "The hotel bar was closed down."),
        ("The class starts at 18:00.", "The class was full last year at 17:00."),
        ("The budget is 900 euros.", '"We would like to tell you all about our holidays in Spain."'),
        ("Never deploy on Fridays.", "Never deploy on Mondays before 10:00."),
        ("[2026-03-02] We fixed the pump.", "[2026-03-09] We painted the pump."),
        ("Do not lend boat 9 to guests.", "Do not lend boat 12 to guests."),
        ("Never let anybody into shed 7.", "Never let anybody into shed 19."),
        ("Never mail customers after 18:00.", "Never mail suppliers after 20:00."),
        ("The hall needs 40 chairs.", "I prefer short answers, at most three sentences."),
        ("The hall needs 40 chairs.", "Now show me 5 recipes."),
        ("The budget is 500 euros.", "Use Postgres 14."),
        ("The train leaves at 9:40.", "Call Ines at 11:00."),
        ("The party is on Friday.", "Call me on Monday."),
        ("The parser fails on line 12.", "Run it 3 times."),
        ("The connect timeout is 5 seconds.", "The read timeout is 30 seconds."),
        ("Platform 4 has a lift.", "Platform 6 has stairs."),
        ("Team A meets at 9:00.", "Team B meets at 10:00."),
        ("On Monday I have 3 meetings.", "On Tuesday I have 5 meetings."),
        ("Adults pay 24 euros.", "Children pay 12 euros."),
        ("The table is 120 cm long.", "The table is 80 cm wide."),
        ("The roof costs 9,000 euros.", "The roof insurance costs 300 euros."),
        ("The rent is 900 euros.", "The rent for the cellar is 60 euros."),
        ("The hall has two doors.", "The hall has six windows."),
        ("The recipe takes 200 grams of flour.", "The recipe takes 3 eggs."),
        ("The server has 8 cores.", "The server has 32 GB of memory."),
        ("The first office has 4 desks.", "The second office has 7 desks."),
        ("Room one is for Monday.", "Room two is for Tuesday."),
        ("Ruben's exam is on Monday.", "Fatima's exam is on Thursday."),
        ("Choir practice is on Tuesday.", "There is also choir practice on Thursday."),
        ("Order 40 of the blue chairs.", "Another 15 of the blue chairs go to the annex."),
        ("Talk to Ruben about the insurance.", "On weekends Fatima answers for the insurance."),
        ("Talk to Ruben about the insurance.", "If Ruben is away, ask Fatima about the insurance."),
        ("The piano may cost 2,400 euros.", "The cover for the piano costs 300 euros."),
        ("The thesis is due on 3 May.", "A draft of the thesis goes to Helga on 1 April."),
        ("The flight leaves at 7:10.", "Boarding for the flight ends at 6:50."),
        ("The workshop costs 900 euros.", "The workshop takes 12 people."),
        ("The workshop is on Monday.", "The workshop starts at 9:00."),
        ("My flight leaves at 7:10.", "My cousins fly too: their slot for the flight is 8:20."),
        ("The museum opens at 10:30.", "Is the museum open at 9:30?"),
        ("The museum opens at 10:30.", "I'll have lunch with my aunt at 12:30."),
        ("The museum opens at 10:30.", "> The museum opens at 9:30."),
        ("The museum opens at 10:30.", "```\nmuseum opens at 9:30\n```"),
        ("Ruben can't eat walnuts.", "Ruben can't eat shrimps."),
        ("Add a test for the parser.", "Add a docstring to the parser."),
        ("The parser fails on line 12.", "The parser fails on line 40 of the other file too."),
        ("Paint the shed dark green.", "Paint the fence ochre."),
        ("Write the weekly digest as a list.", "Write the press release as prose."),
        ("The train to Bergen leaves at 8:10.", "The train to Oslo leaves at 9:40."),
        ("Last year the fair cost 700 euros.", "The fair costs 820 euros."),
        ("The dentist is at 9:15.", "The dentist is at 9:15, as I said."),
        ("The first lesson is at 9:00.", "The last lesson is at 15:00."),
        ("My birthday is on 4 June.", "My brother's birthday is on 9 July."),
        ("Osman's desk is in room 12.", "Leyla's desk is in room 14."),
        ("I have a meeting with Osman at 9:00.", "I have a meeting with Leyla at 11:00."),
        ("I paid 40 euros for the lamp.", "The lamp weighs 3 kilos."),
        ("The dentist is at 9:15.", "Don't forget the dentist."),
        ("The dentist is at 9:15.", "I forgot to say that I like the dentist."),
        ("Choir practice is on Tuesday.", "We did not cancel choir practice."),
        ("The login module has a bug.", "The login module has good tests."),
        ("Use Postgres for the orders.", "Use Redis for the cache."),
        ("Send letters to members as plain text.", "I want the member list as a spreadsheet."),
        ("Paint the gate red.", "Sorry for the noise, we have visitors."),
        ("The gate is 3 metres wide.", "How are you today?", "Lunch now."),
        ("The budget is 900 euros.", "The hotel costs 300 euros."),
        ("The hotel costs 300 euros.", "The budget is 900 euros."),
        ("The budget is 900 euros.", "I paid 300 euros."),
        ("The budget is 900 euros.", "The second office's budget is 300 euros."),
        ("The budget is 900 euros.", "For the second office the budget is 300 euros."),
        ("The train leaves at 8:10.", "My aunt's train leaves at 9:40."),
        ("The porch is painted on Wednesday.", "The porch is tiled on Friday."),
        ("The well gets cleaned at 9:00.", "At 15:00 the well will be covered."),
        ("The rent for the cellar is 480 euros.", "The fee for the cellar is 30 euros."),
        ("The deposit for the cellar is 480 euros.", "The rent for the cellar is 30 euros."),
        ("The report is due on 3 May.", "The plan is due on 20 April."),
        ("Send the books to 12 Castle Street.", "Send the orders to 5 Brook Lane."),
        ("The outbound ferry leaves at 7:10.", "The return ferry leaves at 21:30."),
        ("The cellar costs 480 euros.", 'An advertisement says, "the cellar costs 520 euros a month or less".'),
        ("The studio costs 480 euros.", "While I think of it: the cellar: 520 euros."),
        ("Nina lifts 60 kilos.", "Theo lifts 85."),
        ("Ingrid gets a bunk by the door.", "Pavel gets a bunk by the window."),
        ("The ticket to Graz costs 30 euros.", "The ticket back costs 26 euros."),
        ("The tram to the harbour takes 40 minutes.", "The tram from the harbour takes 55 minutes."),
        ("I have the 7:05 ferry out.", "I have the 21:40 ferry home."),
        ("The way up takes 3 hours.", "The way down takes 2 hours."),
        ("Take 2 pills in the morning.", "Take 1 pill in the evening."),
        ("Give the mare one scoop at breakfast.", "Give the mare half a scoop at dinner."),
        ("Log at level INFO in production.", "Log at level DEBUG in staging."),
        ("Set the pool size to 10 in development.", "Set the pool size to 50 in production."),
        ("Round prices to 2 decimals.", "Round weights to 1 decimal."),
        ("Cut headlines after 60 characters.", "By the way, cut captions after 200."),
        ("On workdays wake me at 6:45.", "On Sundays wake me at 9:00."),
        ("The train is at 9:40.", "I missed the train at 8:10."),
        ("The mill needs a new wheel.", "The mill needs a roof now."),
        ("The pump is in the shed.", "The pump is loud."),
        ("Never give the parrot salt.", "The parrot can whistle now."),
        ("Our agent at the harbour is Ms Petrov.", "Ms Petrov had lunch at the harbour with Mr Osei."),
        ("The lease runs until the end of May.", "The permit runs until the end of July."),
        ("Fix E40117 in the parser.", "Fix E50224 in the printer."),
        ("IDLE_SECONDS should be forty.", "MOST_PAGES should be ninety."),
        ("The choir sings at 18:00.", "Last Monday the choir sang at 17:00."),
        # One of two, but nobody says which.
        ("The office in Bonn opens at 9:00.", "The office in Kiel opens at 10:00.", "The office opens at 8:00 now."),
        # Of what is forbidden there may be any number.
        ("Never touch server web1.", "Never touch server web2."),
        ("Never delete table users_old.", "Never delete table orders_old.", "Never delete table items_old."),
        ("Never give code X1 to customers.", "Never give code X2 to customers."),
        ("Never eat at Luigi's.", "Never eat at Mario's."),
        ("Valve B opens at 6:00.", "Please watch that valve C opens at 6:30."),
        # Of values that are forbidden there may be any number; of two people each has their own.
        ("Never set the timeout to 30.", "Never set the timeout to 60."),
        ("Never run the job at 9:00.", "Never run the job at 12:00."),
        ("不要把超时设成30秒。", "不要把超时设成60秒。"),
        ("李先生对花生过敏。", "王女士对花生不过敏。"),
        ("给李先生留靠窗的位子。", "给王女士留过道的位子。"),
        ("初二(3)班有42人。", "初二(4)班有40人。"),
        # Another room, another's train, and what somebody else is asked.
        ("We sit in Room 4/6.", "The printer is in Room 4/8."),
        ("Room 4/6 is booked for Monday.", "Room 4/8 is booked for Tuesday."),
        ("My train to Bath leaves at 17:05 on Friday.", "Carol's gets in at 16:48, so she'd wait."),
        ("My train to Bath leaves at 17:05.", "Hers is at 16:48, so she waits."),
        ("Ask Anna about everything.", "Ask Ben about everything."),
        ("会议9点开。", "会议10点还是11点"),
        ("酒店订在周五。", "酒店周六还是周日"),
        ("李先生周五来。", "李先生周一付款。"),
        ("李先生周五来。", "王先生改周一来。"),
        # What somebody did, also with a reason that sounds like a change.
        (
            "Mia mended the fence by the pond, as the goats had got out.",
            "Tom painted the fence by the pond, so it dries.",
        ),
        (
            "Two neighbours weighed the honey in the barn.",
            "Tom carried nine crates of honey into the barn, since it rained.",
        ),
        (
            "Mia counted the old tools in the shed.",
            "Tom moved the old tools in the shed, as the roof had turned leaky.",
        ),
        (
            "Keep all of this straight, please.",
            "They switched delivery to Wednesdays for his road, starting this week.",
        ),
    ],
)
def test_other_subjects_and_further_values_replace_nothing(said: tuple[str, ...]) -> None:
    assert sentences(talk(*said)) == NOTHING


# Chinese


@pytest.mark.parametrize(
    "said",
    [
        ("~牙医约在9:15。", "牙医改到10:40了。"),
        ("~合唱排练在周二。", "合唱排练挪到周四。"),
        ("~论文5月3日要交。", "导师说论文4月20日交。"),
        ("~分支是main", "分支现在是develop"),
        ("~分支是main", "分支改成develop"),
        ("~主题是深色", "主题改成浅色"),
        ("分支是main", "测试分支是develop"),
        ("分支是main", "仓库是web"),
        ("~钢琴最多花2400元。", "钢琴可以花3100元。"),
        ("~小提琴送到解放路12号。", "小提琴寄去长安街5号。"),
        ("~保险问王建军。", "保险由赵敏负责。"),
        ("~保险由赵敏负责。", "那就韩磊好了。"),
        ("~棚子刷成墨绿色。", "棚子还是刷成土黄吧。"),
        ("~博物馆10:30开门。", "看错了，是9:30。"),
        ("~兽医周三有空。", "不对，周四。"),
        ("~合唱排练在周二。", "合唱排练从周二改成周四。"),
        ("~合唱排练在周二。", "合唱排练取消了。"),
        ("~论文5月3日要交。", "不用管论文了。"),
        ("~不要改配置文件。", "忘掉我说的关于配置文件的要求。"),
        ("~牙医约在9:15。", "~牙医改到10:40了。", "牙医又改回9:15。"),
        ("牙医约在9:15。", "理发约在10:40。"),
        ("第1组的押金是7590元。", "第5组的押金是6188元。"),
        ("~第1组的押金是7590元。", "第1组的押金改成6188元。"),
        ("合唱排练在周二。", "周四也有合唱排练。"),
        ("保险问王建军。", "保险节假日归赵敏管。"),
        ("椅子要40把。", "分店另外要15把椅子。"),
        ("去程航班7:10起飞。", "返程航班21:30起飞。"),
        ("博物馆10:30开门。", "博物馆9:30开门吗？"),
        ("工作坊要900元。", "工作坊最多12人。"),
        ("猫7:00喂。", "狗7:30喂。"),
        ("妈妈的航班9:15起飞。", "爸爸的航班10:40起飞。"),
        ("~妈妈的航班9:15起飞。", "妈妈的航班现在10:40起飞。"),
        ("读请求最多等4秒。", "写请求最多等9秒。"),
        ("小岚喝茶加糖。", "小舟喝茶加柠檬。"),
        ("我的驾照2031年到期。", "小舟的驾照2028年到期。"),
        ("我睡上铺。", "我同事睡下铺。"),
        ("小岚是组长。", "小岚的助手是老秦。"),
        ("年费是600元。", "2015年年费是400元。"),
        ("我们养了两只猫。", "小时候我们养了三只猫。"),
        ("标题用黑体。", "手册里的例子标题用宋体。"),
        ("日志里时间用UTC。", "报告里时间用北京时间。"),
        ("我们在码头集合。", "他朋友写的是“我们在山顶的亭子集合”。"),
        ("船票七点开售。", "船票不是八点开售。"),
        ("~晚饭七个人。", "晚饭九个人，老罗一家也来。"),
        ("~小雨的生日是5月4日。", "我记混了，小雨的生日是5月14日。"),
        ("~服务器内存8G。", "服务器内存加到16G了。"),
        ("~台灯寄到榆树街14号。", "哦我上个月搬家了，台灯寄桦木巷3号。"),
        ("我喝茶放两块糖。", "客人喝茶不放糖。"),
        ("晚饭七个人。", "另外，晚饭九个人。"),
        ("要买：鸡蛋、面粉、黄油、白糖。", "白糖不用买了。"),
        ("行程有西安、成都和重庆。", "重庆不去了，加上昆明。"),
        ("~行程有西安、成都和重庆。", "行程取消了。"),
        ("~租了一间琴房。", "琴房我退掉了。"),
        ("~我请了水管工周三来。", "水管工我退掉了。"),
        ("~我报了周三的陶艺课。", "陶艺课我不去了。"),
        ("~给小岚订一顶帐篷。", "帐篷？别订了。"),
        ("~别给狗吃骨头。", "现在可以给狗吃骨头了。"),
        ("别给狗吃骨头。", "狗现在可以坐了。"),
        ("~照片放在pics/raw。", "照片挪到pics/done了。"),
        ("读日志在logs/read.txt。", "写日志在logs/write.txt。"),
        ("~我住在苏州。", "我以前住苏州，现在住杭州。"),
        ("~小岚对花生过敏。", "小岚过敏的是核桃。"),
        ("~仓库的租金是四千五。", "仓库的租金是五千二。"),
        ("~房间要两间。", "房间要三间。"),
        ("~船票5号前付。", "船票9号前付就行。"),
        ("~船票等我30秒。", "船票等我两分钟。"),
        ("红色的箱子重8公斤。", "蓝色的箱子重9公斤。"),
        ("~旧的预算是900元。", "现在的预算是1100元。"),
        ("大厅要12把椅子。", "大厅要4张桌子。"),
        ("周五不要部署。", "周一10:00前不要部署。"),
        ("桌子长120厘米。", "桌子宽80厘米。"),
        ("商店9:00开门。", "商店18:00关门。"),
        ("~商店9:00开门。", "商店10:00开门。"),
        ("~大厅要12把椅子。", "大厅要15把椅子。"),
        ("牙医约在9:15。", "别忘了牙医。"),
        ("张伟周一值班。", "李娜周二值班。"),
        ("~周报用列表写。", "周报改用一段话写。"),
        ("~押金交800元。", "押金涨到950元了。"),
        ("~阳台周三刷漆。", "阳台周五刷漆。"),
        ("~阳台周三刷漆", "周五"),
        ("阳台周三刷漆。", "厨房周五刷漆。"),
        ("阳台周三刷漆", "阳台周五换灯"),
        ("客厅3月4日铺地板。", "客厅3月9日挂窗帘，别忘了。"),
        ("~预算900元。", "今天下雨了。", "猫睡着了。", "预算改成1100元。"),
        ("预算900元。", "酒店要300元。"),
        ("~合唱排练在周二。", "合唱排练我不去了。"),
        ("~仓库每月4350元。", "仓库退租了。"),
        ("合唱排练在周二。", "下周我不去北京。"),
        ("前轮要2.4个大气压。", "后轮要2.8个大气压。"),
        ("小李每周跑12公里。", "小周每周跑18公里。"),
        ("陈晨坐靠窗的位子。", "吴昊坐过道的位子。"),
        ("长沙的码头6:30开门。", "先说个小事，我们在岳阳的码头7:15开门。"),
        ("账单寄给会计。", "宣传册不要寄给会计。"),
        ("上山要3小时。", "下山要2小时。"),
        ("调试日志保留3天。", "审计日志保留90天。"),
        ("信件用全名落款。", "短信用M落款。"),
        ("工作日6:45叫醒我。", "周日9:00叫醒我。"),
        ("仓库每月4350元。", "仓库的灯坏了，不用修。"),
        ("~仓库每月4350元。", "仓库的事不用管了。"),
        ("合唱排练在周二。", "合唱团上周二没有来。"),
        ("我的航班13:05起飞。", "我差点误了6:40的航班。"),
        ("~调试日志保留3天。", "调试日志现在保留5天。"),
        ("~缓存保留十分钟。", "让缓存保留一个小时。"),
        ("~IDLE_SECONDS设为四。", "IDLE_SECONDS调到九"),
        ("IDLE_SECONDS设为四。", "MOST_PAGES设为九。"),
        ("~每个月定投三百。", "七月起每个月定投四百五。"),
        ("~护照四月底到期。", "护照5月9日到期。"),
        ("~乌鸦吃半片药。", "乌鸦吃一整片药了。"),
        ("~小岚3月9日去看牙医。", "牙医把我们挪到了3月14日。"),
        ("~修船报价一万一。", "砍完价，修船他们给到九千五。"),
        ("周一来了40个人。", "周二来了55个人。"),
        ("周一的会9:00开始。", "周二的会10:30开始。"),
        ("买豆腐。", "豆腐涨价了。"),
        ("甲级要40分。", "丁级要65分。"),
        ("~读书会18:30开场。", "读书会晚半小时，19:00。"),
        ("猫吃半罐。", "狗吃一整罐。"),
        ("水泵一每天开30分钟。", "水泵二每天开45分钟。"),
    ],
)
def test_the_same_holds_in_chinese(said: tuple[str, ...]) -> None:
    assert sentences(talk(*said, reply=NOTED_ZH)) == marked(said)


# Whatever the agent answered

AT_LENGTH = (
    "That is easy to arrange in all of the modules that were touched so far, and here is the loader with it.\n\n"
    "```python\ndef load(path):\n    return open(path).read()\n```\n\n"
    "It reads all at once, which is fine for small files. I left the helper alone, as nothing depends on its name."
)
AT_LENGTH_ZH = (
    "明白，这样安排是合理的，后面在已经动过的各个模块里我都会照着来做，下面是读取部分修改之后的样子，请您看一下。\n\n"
    "```python\ndef load(path):\n    return open(path).read()\n```\n\n一次读完对小文件没有问题，小工具我先没有动它。"
)


@pytest.mark.parametrize(
    "said",
    [
        ("~Use tabs for indentation.", "We saw whales.", "Whales are big.", "They sang.", "Use spaces instead."),
        ("~Keep the answers short.", "Actually, keep the answers long and detailed."),
        ("~The default theme is dark.", "The default theme is light now."),
        ("~Put the comments above the code.", "Comments go beside the code now."),
        ("~I want the report as a table.", "I changed my mind, the report should be plain prose."),
        ("~Write commit messages in the past tense.", "I'd rather have commit messages in the imperative."),
        ("~分支是main", "分支现在是develop"),
        ("~主机是北岸。", "主机现在是南岸。"),
        ("~月份用缩写。", "月份现在用全称。"),
        ("~注释用英文写。", "注释改用中文写。"),
        ("~缩进用制表符。", "以后缩进用空格。"),
        ("~回答要简短。", "回答还是详细一点吧。"),
        ("~报告写成表格。", "算了，报告还是写成段落吧。"),
        ("~日志写成一行。", "日志换成多行。"),
        # These only look alike: another thing, a quality of the same, an example, what once was, the next task.
        ("Use tabs in the Go code.", "Use spaces in the Python code."),
        ("The branch is main.", "The branch is up to date now."),
        ("The build runs on every push.", "The build is slow again."),
        ("The theme is dark.", "The theme of the mobile app is light."),
        ("Write the docs in British English.", "Some teams, for example, write the docs in American English."),
        ("Log errors to the console.", "We used to log errors to a file."),
        ("Write tests for the parser module.", "Now write docs for the parser module."),
        ("分支是main", "分支现在是最新的"),
        ("构建跑在每次推送。", "构建现在太慢了。"),
        ("界面是深色的。", "手机端的界面是浅色的。"),
        ("报告写成表格。", "小李的报告写成段落。"),
        ("测试框架用pytest。", "以前测试框架用的是unittest。"),
        ("缩进用制表符。", "比如有的人缩进用空格。"),
        ("给解析器写测试。", "现在给解析器写文档。"),
    ],
)
def test_a_change_without_a_value_counts_however_long_the_answers_are(said: tuple[str, ...]) -> None:
    reply = AT_LENGTH if said[0].isascii() else AT_LENGTH_ZH

    assert sentences(talk(*said, reply=reply)) == marked(said)


@pytest.mark.parametrize(
    "said",
    [
        ("分支是main", "分支现在是最新的"),
        ("构建跑在每次推送。", "构建现在太慢了。"),
        ("报告写成表格。", "小李的报告写成段落。"),
        ("测试框架用pytest。", "以前测试框架用的是unittest。"),
        ("The branch is main.", "The branch is up to date now."),
        ("The theme is dark.", "The theme of the mobile app is light."),
    ],
)
def test_a_note_makes_no_change_of_what_tells_of_something_else(said: tuple[str, ...]) -> None:
    assert sentences(talk(*said)) == NOTHING


# A word in common takes no rule's force


@pytest.mark.parametrize(
    "said",
    [
        (
            "Note 5 from the Sigrun. Always write departures in 24-hour time and fares in crowns.",
            "Note 6 from the Sigrun. The cook weighed the mooring lines.",
            "Note 7 from the Sigrun. The pilot went ashore.",
        ),
        (
            "Always write departures in 24-hour time and fares in crowns.",
            *(f"Entry {number} came in at berth {number}." for number in range(300)),
            "About groups: the deposit is 1,250 crowns.",
            "Correction about groups: the deposit is 1,900 crowns now, not 1,250 crowns.",
        ),
    ],
)
def test_a_rule_outlives_statements_that_share_a_word_with_it(said: tuple[str, ...]) -> None:
    assert not [sentence for sentence in sentences(talk(*said)) if sentence.startswith("Always")]


# What the assistant said


def test_an_echo_of_what_is_outdated_is_outdated_too() -> None:
    said = talk("The dentist is at 9:15. / Noted, the dentist: 9:15. Anything else?", "The dentist moved to 10:40.")

    assert sentences(said, Role.ASSISTANT) == ("Noted, the dentist: 9:15.",)


def test_an_echo_of_what_is_in_force_stands() -> None:
    said = talk("The dentist is at 9:15.", "The dentist moved to 10:40. / Noted, the dentist: 10:40.")

    assert sentences(said, Role.ASSISTANT) == NOTHING


def test_a_number_within_a_longer_one_is_no_echo() -> None:
    said = talk("We expect 2 guests. / Noted: 2 guests. I found 12 chairs.", "We expect 4 guests.")

    assert sentences(said, Role.ASSISTANT) == ("Noted: 2 guests.",)


def test_what_the_assistant_says_of_its_own_changes_no_value() -> None:
    assert sentences(talk("The dentist is at 9:15. / The dentist is at 10:40.", "Thanks.")) == NOTHING


def test_tools_and_system_prompts_change_no_value() -> None:
    others = [Said(role, "The dentist is at 10:40.") for role in (Role.SYSTEM, Role.DEVELOPER, Role.TOOL)]

    assert outdated([*talk("The dentist is at 9:15."), *others]) == []


def test_it_tells_who_took_the_place_and_where_the_sentence_stands() -> None:
    said = talk("Hello! The dentist is at 9:15. Thanks a lot!", "The dentist moved to 10:40.")

    assert outdated(said) == [Outdated(message=0, start=7, end=30, by=2)]


def test_nothing_said_is_nothing_outdated() -> None:
    assert outdated([]) == []


# Time


def seconds(messages: int) -> float:
    orders = (f"The delivery of crate {n % 97} to the depot is at {n % 24}:{n % 60:02}." for n in range(messages // 2))
    said = talk(*orders)
    began = perf_counter()
    outdated(said)
    return perf_counter() - began


def test_two_thousand_messages_take_time_in_proportion() -> None:
    seconds(100)

    assert min(seconds(2_000) for _ in range(3)) < 8 * min(seconds(500) for _ in range(3)) + 0.1


# What compaction asks


AROUND = ("The weather has turned cold up here.", "My sister plays the cello in an orchestra.")
OLD, NEW = "The dentist is at 9:30.", "The dentist moved to 11:15."


def a_message(number: int, text: str, **fields: object) -> Unit:
    return Unit(id=f"m{number}", role=Role.USER, content=text, **fields)  # type: ignore[arg-type]


def told(old: Unit, new: Unit) -> Force:
    return in_force((*(a_message(number, text) for number, text in enumerate(AROUND)), old, new))


def test_of_messages_it_says_which_sentences_are_no_longer_in_force() -> None:
    assert told(a_message(8, OLD), a_message(9, NEW)).gone == {"m8": ((0, len(OLD)),)}


def test_what_a_client_puts_first_and_what_compaction_wrote_state_nothing() -> None:
    assert told(a_message(8, OLD), a_message(9, NEW, framed=True)).gone == {}
    assert told(a_message(8, OLD, kind=Kind.SUMMARY), a_message(9, NEW)).gone == {}


def test_of_what_may_be_outdated_it_says_what_was_told_later_of_the_same() -> None:
    old, new = "The dentist is at 9:30.", "The dentist has a new receptionist."

    assert told(a_message(8, old), a_message(9, new)).beside == {("m8", 0): (("m9", 0),)}


def test_what_shares_little_with_a_later_statement_holds_beside_it() -> None:
    lines = (
        "We had a dog called Captain when I was five.",
        "The Captain business is back, 12 mg of the new tablets, sadly.",
    )
    said = talk(*lines, reply=AT_LENGTH)

    book = heard(said)

    assert not book.gone
    assert [(old.text, new.text) for old, new in book.followed()] == [lines]


@pytest.mark.parametrize(
    ("old", "new", "told_with_it"),
    [
        ("The plaster cast stays on for 6 weeks.", "Doctor had another look today: 9 weeks, sadly.", True),
        ("每人的餐标按80元算。", "领导批了，可以到120元。", True),
        ("The plaster cast stays on for 6 weeks.", "Doctor had another look on Tuesday.", False),
        ("The plaster cast stays on for 6 weeks.", "Doctor paid 9 euros.", False),
    ],
)
def test_a_value_that_is_like_nothing_before_is_told_with_the_newest_of_its_sort(
    old: str, new: str, told_with_it: bool
) -> None:
    beside = told(a_message(8, old), a_message(9, new)).beside

    assert beside == ({("m8", 0): (("m9", 0),)} if told_with_it else {})


def test_what_something_is_now_counts_as_changed_whatever_was_answered() -> None:
    old, new = "The theme is dark.", "The theme is light now."

    assert told(a_message(8, old), a_message(9, new)).changed == {("m9", 0)}


@pytest.mark.parametrize(
    ("asked", "answered", "holds"),
    [
        ("Write the digest as a list.", "Got it.", True),
        ("Write the digest as a list.", "Noted.", True),
        ("Write the digest as a list.", "So a list for the digest. Anything else?", True),
        ("围栏用砖红。", "记下了。", True),
        (
            "邻居家的猫又睡在我的花盆里。",
            "猫喜欢又暖又松的土。放几颗松果，它就觉得不舒服了，也不会受伤，旁边再放个垫了旧毛毯的盒子。",
            False,
        ),
        ("The digest goes out on Monday.", "Do you like Mondays?", True),  # a value holds whatever is answered
        ("My tea is cold again.", "Put the kettle on, and enjoy the break.", False),
        ("My tea is cold again. The digest goes out on Monday.", "Noted.", False),
    ],
)
def test_a_wish_that_was_taken_note_of_holds_and_small_talk_with_a_kind_word_does_not(
    asked: str, answered: str, holds: bool
) -> None:
    reply = Unit(id="m9", role=Role.ASSISTANT, content=answered)

    assert (("m8", 0) in in_force((a_message(8, asked), reply)).stated) is holds


@pytest.mark.parametrize(("sentence", "asks"), [("Is it at 9:30?", True), ("Could you make it 9:30?", False)])
def test_a_request_in_the_form_of_a_question_is_none(sentence: str, asks: bool) -> None:
    assert is_question(sentence) is asks


@pytest.mark.parametrize(
    ("sentence", "asks"),
    [
        ("how long does paint need to dry", True),
        ("what's a good name for a ferry", True),
        ("does moss hurt a roof", True),
        ("is the ferry late on Sundays", True),
        ("酒店周六还是周日", True),
        ("会议还是10点吧。", False),
        ("Translate everything into French.", False),
        ("Is vegetarian, like Nora.", False),
        ("Did the tax return, it took 3 hours.", False),
        ("What I want is the blue tent.", False),
        ("How are you, I would like two tickets.", False),
        ("油漆多久能干", True),
        ("屋顶的青苔怎么去掉", True),
        ("推荐的书不超过50元", False),
        ("还有几个人要来，订12个位子。", False),
        ("怎么都行，帐篷要蓝的。", False),
    ],
)
def test_a_question_needs_no_mark(sentence: str, asks: bool) -> None:
    assert is_question(sentence) is asks


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("Translate everything you write into French.", "Translate everything you write into German."),
        ("Recommend only vegetarian dishes to me.", "Recommend only vegan dishes to me."),
        ("Explain things in at most three sentences.", "Explain things in at most five sentences."),
        ("Suggest at most 3 dishes.", "Suggest at most 5 dishes."),
        ("推荐的书不超过50元。", "推荐的书不超过80元。"),
    ],
)
def test_what_the_agent_is_told_to_do_is_no_question_and_can_be_told_otherwise(before: str, now: str) -> None:
    assert sentences(talk(before, now)) == (before,)


def test_one_question_takes_no_place_of_another() -> None:
    assert outdated(talk("油漆放多久就干", "胶水打开以后能放多久", reply="大概两天。")) == []
    assert outdated(talk("how many legs does a crab have", "how many teeth does a shark have", reply="Ten.")) == []


def test_what_is_longer_than_a_person_types_is_not_heard() -> None:
    paste = f"{OLD}\n{'A line of a log. ' * 1_000}"

    assert told(a_message(8, paste), a_message(9, NEW)).gone == {}
